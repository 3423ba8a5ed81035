/** Programs and tables of numbers on the GPU, with what all programs share. */

import * as THREE from "three";
import { type Pass, SHADERS } from "./shaders.ts";

export type Uniforms = { [name: string]: THREE.IUniform };

/** The most section planes at once: two on each axis, and a free one. */
export const MOST_CUTS = 7;

/** The widest row of a table: every WebGL 2 device has textures of 2,048. */
const TABLE_WIDTH = 2048;

/** Returns what all programs read: the camera, the cut, the light, the look of objects. */
export function sharedUniforms() {
  return {
    look: { value: null as THREE.Texture | null },
    /** Colours of the file; whether they are drawn, except of one object. */
    palette: { value: null as THREE.Texture | null },
    byFile: { value: false },
    exceptObject: { value: -1 },
    orderScale: { value: 1 },
    rotation: { value: new THREE.Matrix3() },
    projection: { value: new THREE.Matrix4() },
    eye: { value: new THREE.Vector3() },
    forward: { value: new THREE.Vector3() },
    orthographic: { value: false },
    nearest: { value: 0 },
    cuts: { value: Array.from({ length: MOST_CUTS }, () => new THREE.Vector4()) },
    cutCount: { value: 0 },
    lightUp: { value: new THREE.Vector3(0, 0, 1) },
    lightSide: { value: new THREE.Vector3(1, 0, 0) },
    pixels: { value: 1 },
    viewport: { value: new THREE.Vector2(1, 1) },
    depthMap: { value: null as THREE.Texture | null },
    /** The part of a pixel by which corners of two faces are off. */
    snap: { value: 0 },
    ink: { value: new THREE.Vector3() },
    edges: { value: true },
  };
}

export type SharedUniforms = ReturnType<typeof sharedUniforms>;

type Shader = keyof typeof SHADERS;

const STATES: Record<Pass, THREE.ShaderMaterialParameters> = {
  opaque: { defines: { OPAQUE: 1 } },
  ties: { defines: { TIES: 1 } },
  translucent: {
    defines: { TRANSLUCENT: 1 },
    depthTest: false,
    depthWrite: false,
    transparent: true,
    blending: THREE.CustomBlending,
    blendSrc: THREE.OneFactor,
    blendDst: THREE.OneFactor,
  },
  lines: { defines: { LINES: 1 }, depthWrite: false, transparent: true },
};

/** Returns the program of a shape for one pass. */
export function material(shader: Shader, pass: Pass, uniforms: Uniforms, defines = {}): THREE.RawShaderMaterial {
  const state = STATES[pass];
  return new THREE.RawShaderMaterial({
    ...SHADERS[shader],
    ...state,
    defines: { ...state.defines, ...defines },
    uniforms,
    glslVersion: THREE.GLSL3,
    side: THREE.DoubleSide,
    forceSinglePass: true,
  });
}

/** Returns the program of a shape drawn over the others. */
export function overlay(
  shader: Shader,
  uniforms: Uniforms,
  state: THREE.ShaderMaterialParameters = {},
): THREE.RawShaderMaterial {
  return new THREE.RawShaderMaterial({
    ...SHADERS[shader],
    uniforms,
    glslVersion: THREE.GLSL3,
    side: THREE.DoubleSide,
    forceSinglePass: true,
    transparent: true,
    depthWrite: false,
    ...state,
  });
}

/** Returns a texture with one texel of four numbers for each row of a table. */
export function table<T extends Float32Array | Uint8Array>(rows: number, make: (length: number) => T) {
  const width = Math.min(TABLE_WIDTH, Math.max(1, rows));
  const height = Math.max(1, Math.ceil(rows / width));
  const data = make(4 * width * height);
  const type = data instanceof Float32Array ? THREE.FloatType : THREE.UnsignedByteType;
  const texture = new THREE.DataTexture(data, width, height, THREE.RGBAFormat, type);
  texture.needsUpdate = true;
  return { texture, data };
}

/** Returns a table of numbers, four a row. */
export function filledTable<T extends Float32Array | Uint8Array>(numbers: T): THREE.DataTexture {
  const made = numbers.constructor as new (length: number) => T;
  const { texture, data } = table(numbers.length / 4, (length) => new made(length));
  data.set(numbers);
  return texture;
}

/** Returns a table with the rows of matrices of copies: three texels each, relative to a point. */
export function transformTable(transforms: Float64Array, shift: readonly number[]) {
  const made = table(transforms.length / 4, (length) => new Float32Array(length));
  for (let i = 0; i < transforms.length; i++) {
    made.data[i] = transforms[i] - (i % 4 === 3 ? shift[((i % 12) - 3) / 4] : 0);
  }
  return made;
}

/** Returns an object that is drawn by a program without its own tests of what is in the picture. */
export function plain<T extends THREE.Object3D>(object: T): T {
  object.frustumCulled = false;
  object.matrixAutoUpdate = false;
  return object;
}

/** Returns bytes of the buffers of a geometry; each buffer once. */
export function bytesOf(geometries: readonly THREE.BufferGeometry[]): number {
  const buffers = new Set<ArrayBufferLike>();
  for (const geometry of geometries) {
    for (const attribute of Object.values(geometry.attributes)) buffers.add(attribute.array.buffer);
    if (geometry.index) buffers.add(geometry.index.array.buffer);
  }
  return [...buffers].reduce((sum, buffer) => sum + buffer.byteLength, 0);
}
