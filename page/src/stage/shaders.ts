/**
 * The programs of the drawing, GLSL ES 3.0.
 *
 * Each shape is drawn by up to three programs with the same vertices: `opaque` writes colour and depth; `ties` draws
 * again what lies at the depth of the picture, and writes the order of the object as depth, so that of coincident faces
 * the lowest geometry, then the lowest index remains; `translucent` adds up what opacity leaves. Vertices are relative
 * to the scene's shift, in float32.
 */

/** Faces of a box by which rays enter it, by which they leave it, and those around an eye within it. */
const SIDES = `
const int NEAR = 0;
const int FAR = 1;
const int AROUND = 2;
`;

export type Pass = "opaque" | "ties" | "translucent" | "lines";

const HEAD = `
precision highp float;
precision highp int;
precision highp sampler2D;
uniform mat3 rotation;
uniform mat4 projection;
uniform vec3 eye;
uniform vec3 forward;
uniform bool orthographic;
uniform vec4 cuts[7];
uniform int cutCount;

/** Whether the section planes cut a point away; what lies on them is left, up to rounding. */
bool isCut(vec3 point) {
  float allowed = 2e-6 * length(point);
  for (int i = 0; i < cutCount; i++) if (dot(cuts[i].xyz, point) > cuts[i].w + allowed) return true;
  return false;
}
`;

/** Brighter upward, darker downward; faces to two sides differ. */
const SHADE = `
uniform vec3 lightUp;
uniform vec3 lightSide;

float shade(vec3 normal) {
  float up = dot(normal, lightUp);
  float side = abs(dot(normal, lightSide));
  return up > 0.0 ? mix(0.72 + 0.12 * side, 1.0, up) : mix(0.72 + 0.12 * side, 0.5, -up);
}
`;

/** Shared by the vertex programs: look of an object, its place in the picture, shade of a face. */
const VERTEX = `${HEAD}${SHADE}
uniform sampler2D look;
uniform sampler2D palette;
uniform bool byFile;
uniform int exceptObject;
uniform float orderScale;
uniform float pixels;
uniform vec2 limits;
out vec3 vPoint;
flat out vec4 vTone;
flat out float vOrder;

ivec2 texel(int i, sampler2D table) {
  int wide = textureSize(table, 0).x;
  return ivec2(i % wide, i / wide);
}

vec4 lookOf(int object) {
  return texelFetch(look, texel(object, look), 0);
}

/** Returns the look of a primitive of an object; own: its row of the palette, 0 for none. */
vec4 toneOf(int object, int own) {
  vec4 tone = lookOf(object);
  if (!byFile || own == 0 || object == exceptObject) return tone;
  vec4 ofFile = texelFetch(palette, texel(own, palette), 0);
  return vec4(ofFile.rgb, tone.a * ofFile.a);
}

/** Whether this pass draws an object of this opacity. */
bool drawn(float opacity) {
#if defined(TRANSLUCENT)
  return opacity > 0.0 && opacity < 1.0;
#elif defined(LINES)
  return opacity > 0.0;
#else
  return opacity == 1.0;
#endif
}

vec4 place(vec3 point) {
  vPoint = point - eye;
  return projection * vec4(rotation * vPoint, 1.0);
}

const vec4 NOWHERE = vec4(2.0, 2.0, 2.0, 1.0);

/** Returns pixels that a length takes at a point. */
float pixelsOf(float size, vec3 point) {
  float depth = dot(point - eye, forward);
  return size * pixels / (orthographic ? 1.0 : max(depth, 1e-6));
}
`;

/** Shared by the fragment programs: the cut, and what a pass writes. */
const FRAGMENT = `${HEAD}${SHADE}
uniform sampler2D depthMap;
uniform float snap;
uniform vec3 ink;
uniform bool edges;
in vec3 vPoint;
flat in vec4 vTone;
flat in float vOrder;
out vec4 colour;

/** Writes a colour at a depth; slope: its change from pixel to pixel. */
void writeAt(vec3 rgb, float depth, float slope) {
#if defined(TIES)
  // Rounding of depths, and of corners to parts of a pixel, moves a face by less than this.
  float allowance = 5e-7 + snap * slope;
  if (depth > texelFetch(depthMap, ivec2(gl_FragCoord.xy), 0).r + allowance) discard;
  gl_FragDepth = vOrder;
  colour = vec4(rgb, 1.0);
#elif defined(TRANSLUCENT)
  if (depth > texelFetch(depthMap, ivec2(gl_FragCoord.xy), 0).r) discard;
  float weight = -log(1.0 - vTone.a);
  colour = vec4(rgb * weight, weight);
#else
#ifdef CAPPED
  gl_FragDepth = depth;
#endif
  colour = vec4(rgb, 1.0);
#endif
}

void write(vec3 rgb) {
  writeAt(rgb, gl_FragCoord.z, fwidth(gl_FragCoord.z));
}
`;

/** Where a cut opens the view into what is solid. */
const OPENING = `
/**
 * Returns how far before a point a plane opens what lies there: a part of the way to the eye, orthographic a length; and
 * the plane's normal. Negative where none does, or where another cuts all of it away.
 */
float openingOf(vec3 direction, out vec3 normal) {
  float opening = 1e30;
  float least = 0.0;
  normal = vec3(0.0);
  for (int i = 0; i < cutCount; i++) {
    float speed = dot(cuts[i].xyz, direction);
    float room = cuts[i].w - dot(cuts[i].xyz, vPoint);
    if (speed < 0.0 && room / -speed < opening) {
      opening = room / -speed;
      normal = cuts[i].xyz;
    }
    if (speed > 0.0) least = max(least, room / -speed);
  }
  return opening < least || opening >= (orthographic ? 1e30 : 1.0) ? -1.0 : opening;
}
`;

/** Rows of boxes: two texels each, (lower, object) and (upper, covered faces + 64 × row of the palette). */
const BOX_ROW = `
uniform sampler2D boxes;
uniform int first;
uniform int inBase;
uniform int firstObject;
#ifdef COPIES
uniform sampler2D copies;
#endif

struct Box {
  vec3 lower;
  vec3 upper;
  int object;
  int covered;
  int own;
  mat3 axes;
  vec3 origin;
};

Box boxOf(int row) {
  Box box;
#ifdef COPIES
  int copy = row / inBase;
  int at = 2 * (row % inBase);
  vec4 x = texelFetch(copies, texel(3 * copy, copies), 0);
  vec4 y = texelFetch(copies, texel(3 * copy + 1, copies), 0);
  vec4 z = texelFetch(copies, texel(3 * copy + 2, copies), 0);
  box.axes = transpose(mat3(x.xyz, y.xyz, z.xyz));
  box.origin = vec3(x.w, y.w, z.w);
  box.object = firstObject + copy;
#else
  int at = 2 * row;
  box.axes = mat3(1.0);
  box.origin = vec3(0.0);
#endif
  vec4 lower = texelFetch(boxes, texel(at, boxes), 0);
  box.lower = lower.xyz;
  vec4 upper = texelFetch(boxes, texel(at + 1, boxes), 0);
  box.upper = upper.xyz;
  box.covered = int(upper.w) & 63;
  box.own = int(upper.w) >> 6;
#ifndef COPIES
  box.object = int(lower.w);
#endif
  return box;
}

vec3 inScene(Box box, vec3 point) {
#ifdef COPIES
  return box.axes * point + box.origin;
#else
  return point;
#endif
}

/** Returns the largest extent of a box in pixels. */
float extentOf(Box box) {
  vec3 size = box.upper - box.lower;
  vec3 middle = inScene(box, 0.5 * (box.lower + box.upper));
#ifdef COPIES
  size *= vec3(length(box.axes[0]), length(box.axes[1]), length(box.axes[2]));
#endif
  return pixelsOf(max(size.x, max(size.y, size.z)), middle);
}
`;

/**
 * Three faces of a box by seven vertices: the corner nearest to the eye, three with one coordinate from the other side,
 * three with two. The last are each in one face alone, and give it its colour; that of a covered
 * face is at the first corner, so that nothing of the face is drawn.
 */
const BOX_VERTEX = `${VERTEX}${BOX_ROW}${SIDES}
uniform bool farSide;
out vec3 vWithin;
flat out int vAxis;
#ifdef CAPPED
/** Where the eye is within the box, or an orthographic view comes from. */
flat out vec3 vEye;
flat out vec3 vColour;
flat out int vFace;
#endif

void main() {
  int k = gl_VertexID % 7;
  Box box = boxOf(first + gl_VertexID / 7);
  vTone = toneOf(box.object, box.own);
  vOrder = (float(box.object) + 0.5) * orderScale;
  // Unset numbers may be NaN, at which some devices hang.
  vPoint = vec3(0.0);
  vWithin = vec3(0.0);
  vAxis = 0;
#ifdef CAPPED
  vEye = vec3(0.0);
  vColour = vTone.rgb;
  vFace = NEAR;
#endif
  if (!drawn(vTone.a) || extentOf(box) < limits.x) {
    gl_Position = NOWHERE;
    return;
  }
  vec3 middle = 0.5 * (box.lower + box.upper);
#ifdef COPIES
  mat3 back = inverse(box.axes);
  vec3 toEye = orthographic ? back * -forward : back * (eye - box.origin) - middle;
#else
  vec3 toEye = orthographic ? -forward : eye - middle;
#endif
  bool inside = !orthographic && all(lessThan(abs(toEye), 0.5 * (box.upper - box.lower)));
  bool away = farSide != inside;
  int axis = (k + 2) % 3;
  vec3 one = vec3(axis == 0, axis == 1, axis == 2);
  vec3 near = k == 0 ? vec3(1.0) : k < 4 ? 1.0 - one : one;
  vec3 toward = vec3(greaterThan(toEye, vec3(0.0)));
  if (away) toward = 1.0 - toward;
  bool covered = (box.covered >> (2 * axis + int(dot(one, toward))) & 1) == 1;
  if (k > 3 && covered) near = vec3(1.0);
  vWithin = mix(1.0 - toward, toward, near);
  vAxis = axis;
#ifdef CAPPED
  vec3 size = max(box.upper - box.lower, vec3(1e-30));
  vEye = toEye / size + (orthographic ? 0.0 : 0.5);
  vFace = inside ? AROUND : away ? FAR : NEAR;
#endif
  vec3 normal = one * (2.0 * toward - 1.0);
#ifdef COPIES
  normal = normalize(normal * back);
#endif
  vTone.rgb *= shade(away ? -normal : normal) * (away ? 0.8 : 1.0);
  gl_Position = place(inScene(box, mix(box.lower, box.upper, vWithin)));
}
`;

const BOX_FRAGMENT = `${FRAGMENT}${OPENING}${SIDES}
in vec3 vWithin;
flat in int vAxis;

/** Returns a colour with ink at the edges of a face; pixels: of a part of the box's extents. */
vec3 edged(vec3 rgb, float fromEdge, float pixel) {
  float line = clamp(1.3 - fromEdge, 0.0, 1.0);
  return edges ? mix(rgb, ink, 0.65 * line * smoothstep(5.0, 20.0, 1.0 / pixel)) : rgb;
}

#ifdef CAPPED
flat in vec3 vEye;
flat in vec3 vColour;
flat in int vFace;

/** Draws the face that a cut makes of a solid box, from a face that rays leave it by; returns false where there is none. */
bool writeCap() {
  vec3 direction = orthographic ? forward : vPoint;
  vec3 normal;
  float opening = openingOf(direction, normal);
  vec3 within = orthographic ? vWithin + opening * vEye : mix(vWithin, vEye, opening);
  vec4 clip = projection * vec4(rotation * (vPoint - opening * direction), 1.0);
  float depth = 0.5 * clip.z / clip.w + 0.5;
  float slope = fwidth(depth);
  vec3 pixel = max(fwidth(within), vec3(1e-6));
  bool isWithin = all(greaterThan(within, vec3(-1e-5))) && all(lessThan(within, vec3(1.0 + 1e-5)));
  if (opening < 0.0 || !isWithin) return false;
  vec3 fromEdge = min(within, 1.0 - within) / pixel;
  float nearest = min(fromEdge.x, min(fromEdge.y, fromEdge.z));
  writeAt(edged(vColour * shade(normal), nearest, max(pixel.x, max(pixel.y, pixel.z))), depth, slope);
  return true;
}
#endif

void main() {
  vec2 at = vAxis == 0 ? vWithin.yz : vAxis == 1 ? vWithin.zx : vWithin.xy;
  vec2 pixel = max(fwidth(at), vec2(1e-6));
#ifdef CAPPED
  if (vFace != NEAR && writeCap()) return;
  if (vFace == FAR) discard;
#endif
  if (isCut(vPoint)) discard;
  vec2 fromEdge = min(at, 1.0 - at) / pixel;
  write(edged(vTone.rgb, min(fromEdge.x, fromEdge.y), max(pixel.x, pixel.y)));
}
`;

/** A box of few pixels as one point of its size. */
const DOT_VERTEX = `${VERTEX}${BOX_ROW}
uniform int stride;

/** Returns the mean shade of the faces towards the eye that none covers, each by its area in the picture. */
float meanShade(Box box, vec3 size) {
  vec3 middle = inScene(box, 0.5 * (box.lower + box.upper));
  vec3 toEye = orthographic ? -forward : normalize(eye - middle);
  vec3 area = vec3(size.y * size.z, size.z * size.x, size.x * size.y) + 1e-30;
  float sum = 0.0;
  float total = 0.0;
  for (int a = 0; a < 3; a++) {
    vec3 normal = normalize(box.axes[a]);
    float towards = dot(normal, toEye);
    bool covered = (box.covered >> (2 * a + int(towards > 0.0)) & 1) == 1;
    float weight = (covered ? 1e-6 : 1.0) * abs(towards) * area[a];
    sum += weight * shade(towards < 0.0 ? -normal : normal);
    total += weight;
  }
  return sum / total;
}

void main() {
  Box box = boxOf(first + gl_VertexID * stride);
  vTone = toneOf(box.object, box.own);
  vOrder = 0.0;
  vPoint = vec3(0.0);
  float extent = extentOf(box);
  if (!drawn(vTone.a) || extent >= limits.y) {
    gl_Position = NOWHERE;
    gl_PointSize = 1.0;
    return;
  }
  vec3 size = box.upper - box.lower;
  vTone.rgb *= meanShade(box, size);
  gl_Position = place(inScene(box, 0.5 * (box.lower + box.upper)));
  float fullness = (size.x + size.y + size.z) / (3.0 * max(size.x, max(size.y, size.z)) + 1e-30);
  // Each stands for a few boxes where some are left out.
  gl_PointSize = max(extent * (0.4 + 0.6 * fullness) * pow(float(stride), 0.25), 1.0);
}
`;

const DOT_FRAGMENT = `${FRAGMENT}
void main() {
  if (isCut(vPoint)) discard;
  write(vTone.rgb);
}
`;

const MESH_VERTEX = `${VERTEX}
in vec3 position;
flat out int vMirrored;
uniform sampler2D objects;
#ifdef OWNERS
in uint owner;
#else
const uint owner = 0u;
#endif
#ifdef COPIES
uniform sampler2D copies;
uniform int first;
uniform int firstObject;
#endif

void main() {
  vec3 point = position;
  float copyScale = 1.0;
  vMirrored = 0;
  vec4 own = texelFetch(objects, texel(int(owner), objects), 0); // its object, order, spacing of edges, and row of the palette
#ifdef COPIES
  int copy = first + gl_InstanceID;
  vec4 x = texelFetch(copies, texel(3 * copy, copies), 0);
  vec4 y = texelFetch(copies, texel(3 * copy + 1, copies), 0);
  vec4 z = texelFetch(copies, texel(3 * copy + 2, copies), 0);
  vec4 from = vec4(position, 1.0);
  point = vec3(dot(x, from), dot(y, from), dot(z, from));
  copyScale = max(length(x.xyz), max(length(y.xyz), length(z.xyz)));
  vMirrored = dot(cross(x.xyz, y.xyz), z.xyz) < 0.0 ? 1 : 0;
  int object = firstObject + copy;
  int order = object;
#else
  int object = int(own.x);
  int order = int(own.y);
#endif
  vTone = toneOf(object, int(own.w));
  vOrder = (float(order) + 0.5) * orderScale;
  vPoint = vec3(0.0);
  if (!drawn(vTone.a)) {
    gl_Position = NOWHERE;
    return;
  }
  gl_Position = place(point);
#ifdef LINES
  // Lines a few pixels apart would cover the object.
  vTone.a *= smoothstep(3.0, 12.0, pixelsOf(own.z * copyScale, point));
  // A pixel nearer than the faces, so that an edge is in front of both. Offsets of polygons would do, but not all
  // devices count them in gl_FragCoord.z, which ties are found by.
  vec3 nearer = orthographic ? vPoint - forward * (1.2 / pixels) : vPoint * (1.0 - 1.2 / pixels);
  vec4 clip = projection * vec4(rotation * nearer, 1.0);
  gl_Position.z = clip.z * gl_Position.w / clip.w;
#endif
}
`;

const MESH_FRAGMENT = `${FRAGMENT}${OPENING}
flat in int vMirrored;

void main() {
#ifdef LINES
  if (isCut(vPoint)) discard;
  colour = vec4(ink, 0.7 * vTone.a);
#else
  vec3 normal = normalize(cross(dFdx(vPoint), dFdy(vPoint)));
  if (isCut(vPoint)) discard;
  if (dot(normal, orthographic ? forward : vPoint) > 0.0) normal = -normal;
  // What a plane opens is drawn inside as the plane would cut it, and darker, as walls are in floor plans.
  vec3 opened;
  bool isInside = cutCount > 0 && gl_FrontFacing == (vMirrored == 1);
  float tone = 1.0;
  if (isInside && openingOf(orthographic ? forward : vPoint, opened) >= 0.0) {
    normal = opened;
    tone = 0.55;
  }
  write(vTone.rgb * (tone * shade(normal)));
#endif
}
`;

/** Lines of some pixels: four vertices a segment. */
const RIBBON_VERTEX = `${HEAD}
uniform vec2 viewport;
uniform float width;
uniform float nearest;
in vec3 start;
in vec3 end;
in vec4 tint;
out vec3 vPoint;
out vec4 vTint;
out float vAcross;

void main() {
  int k = gl_VertexID % 4;
  vPoint = vec3(0.0);
  vTint = tint;
  vAcross = 0.0;
  if (tint.a == 0.0) {
    gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
    return;
  }
  vec3 a = start - eye;
  vec3 b = end - eye;
  float depthA = dot(a, forward);
  float depthB = dot(b, forward);
  if (!orthographic && depthA < nearest) a = mix(a, b, clamp((nearest - depthA) / (depthB - depthA), 0.0, 1.0));
  if (!orthographic && depthB < nearest) b = mix(b, a, clamp((nearest - depthB) / (depthA - depthB), 0.0, 1.0));
  vec4 from = projection * vec4(rotation * a, 1.0);
  vec4 to = projection * vec4(rotation * b, 1.0);
  vec2 along = (to.xy / to.w - from.xy / from.w) * viewport;
  along = length(along) > 1e-6 ? normalize(along) : vec2(1.0, 0.0);
  float side = k % 2 == 0 ? -1.0 : 1.0;
  bool atEnd = k > 1;
  float halfWidth = 0.5 * width + 0.5;
  vec4 clip = atEnd ? to : from;
  clip.xy += side * halfWidth * 2.0 * vec2(-along.y, along.x) / viewport * clip.w;
  vPoint = atEnd ? b : a;
  vAcross = side * halfWidth;
  gl_Position = clip;
}
`;

const RIBBON_FRAGMENT = `${HEAD}
uniform float width;
uniform float opacity;
uniform bool wholeSpace;
in vec3 vPoint;
in vec4 vTint;
in float vAcross;
out vec4 colour;

void main() {
  if (!wholeSpace && isCut(vPoint)) discard;
  float cover = clamp(0.5 * width + 0.5 - abs(vAcross), 0.0, 1.0);
  colour = vec4(vTint.rgb, vTint.a * cover * opacity);
}
`;

/** Points of a cloud (squares), and marks on a ray (discs with a rim). */
const POINT_VERTEX = `${HEAD}
uniform float size;
in vec3 position;
in vec4 tint;
out vec3 vPoint;
out vec4 vTint;

void main() {
  vPoint = position - eye;
  vTint = tint;
  gl_Position = projection * vec4(rotation * vPoint, 1.0);
  gl_PointSize = size;
}
`;

const POINT_FRAGMENT = `${HEAD}
uniform float opacity;
uniform float size;
uniform bool wholeSpace;
in vec3 vPoint;
in vec4 vTint;
out vec4 colour;

void main() {
  if (!wholeSpace && isCut(vPoint)) discard;
#ifdef MARKS
  // A hollow mark has half opacity in its colour.
  float radius = length(gl_PointCoord - 0.5) * size;
  float cover = clamp(0.5 * size - radius, 0.0, 1.0);
  float rim = clamp(radius - 0.5 * size + 2.0, 0.0, 1.0);
  bool hollow = vTint.a < 1.0;
  vec3 inner = hollow ? vec3(1.0) : vTint.rgb;
  vec3 outer = hollow ? vTint.rgb : vec3(1.0);
  colour = vec4(mix(inner, outer, rim), cover * opacity);
#else
  colour = vec4(vTint.rgb, vTint.a * opacity);
#endif
}
`;

/** All of the picture by one triangle. */
const SCREEN_VERTEX = `
precision highp float;
out vec2 vAt;
void main() {
  vAt = vec2(gl_VertexID == 1 ? 2.0 : 0.0, gl_VertexID == 2 ? 2.0 : 0.0);
  gl_Position = vec4(2.0 * vAt - 1.0, 0.0, 1.0);
}
`;

const COPY_FRAGMENT = `
precision highp float;
uniform sampler2D source;
in vec2 vAt;
out vec4 colour;
void main() {
  colour = texture(source, vAt);
  if (colour.a == 0.0) discard;
}
`;

/** Colour of what is translucent: the mean by weight; opacity: 1 - product of (1 - opacity of each). */
const BLEND_FRAGMENT = `
precision highp float;
uniform sampler2D source;
uniform float most;
in vec2 vAt;
out vec4 colour;
void main() {
  vec4 sum = texture(source, vAt);
  if (sum.a <= 0.0) discard;
  colour = vec4(sum.rgb / sum.a, min(1.0 - exp(-sum.a), most));
}
`;

/**
 * Darkens what lies deeper than what is around it, by pairs of pixels on both sides: eye-dome lighting that leaves
 * planes as they are, since depths of a plane change evenly in the picture.
 */
const CUE_FRAGMENT = `
precision highp float;
precision highp int;
precision highp sampler2D;
uniform sampler2D depthMap;
uniform mat4 projection;
uniform bool orthographic;
uniform float pixels;
uniform float radius;
uniform float dots;
out vec4 colour;

float depthAt(ivec2 pixel) {
  return texelFetch(depthMap, clamp(pixel, ivec2(0), textureSize(depthMap, 0) - 1), 0).r;
}

void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  float depth = depthAt(at);
  if (depth == 1.0) discard;
  // How many widths of a pixel a depth of 1 is at this distance.
  float widths = abs(orthographic ? 2.0 * pixels / projection[2][2] : 2.0 * pixels / (2.0 * depth - 1.0 + projection[2][2]));
  float sum = 0.0;
  for (int k = 0; k < 8; k++) {
    float angle = 0.3927 * float(k);
    float reach = radius * float(1 + 3 * k % 4);
    ivec2 aside = ivec2(round(reach * vec2(cos(angle), sin(angle))));
    vec2 ends = vec2(depthAt(at + aside), depthAt(at - aside));
    float around = 0.5 * (ends.x + ends.y);
    if (max(ends.x, ends.y) < 1.0) sum += clamp((widths * (depth - around) - dots) / reach - 0.05, 0.0, 1.0);
  }
  colour = vec4(0.0, 0.0, 0.0, 1.0 - exp(-0.13 * sum));
}
`;

/** Depth of one pixel in 24 bits. */
const DEPTH_FRAGMENT = `
precision highp float;
precision highp sampler2D;
uniform sampler2D source;
uniform ivec2 pixel;
in vec2 vAt;
out vec4 colour;
void main() {
  float depth = texelFetch(source, pixel, 0).r;
  vec3 parts = fract(depth * vec3(1.0, 255.0, 65025.0));
  parts.xy -= parts.yz / 255.0;
  colour = vec4(parts, depth < 1.0 ? 1.0 : 0.0);
}
`;

export const SHADERS = {
  box: { vertexShader: BOX_VERTEX, fragmentShader: BOX_FRAGMENT },
  dot: { vertexShader: DOT_VERTEX, fragmentShader: DOT_FRAGMENT },
  mesh: { vertexShader: MESH_VERTEX, fragmentShader: MESH_FRAGMENT },
  ribbon: { vertexShader: RIBBON_VERTEX, fragmentShader: RIBBON_FRAGMENT },
  point: { vertexShader: POINT_VERTEX, fragmentShader: POINT_FRAGMENT },
  copy: { vertexShader: SCREEN_VERTEX, fragmentShader: COPY_FRAGMENT },
  blend: { vertexShader: SCREEN_VERTEX, fragmentShader: BLEND_FRAGMENT },
  cue: { vertexShader: SCREEN_VERTEX, fragmentShader: CUE_FRAGMENT },
  depth: { vertexShader: SCREEN_VERTEX, fragmentShader: DEPTH_FRAGMENT },
};
