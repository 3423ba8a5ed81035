import assert from "node:assert/strict";
import { test } from "node:test";

test("tests run", () => assert.equal(1, 1));
