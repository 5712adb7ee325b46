/**
 * Parts of the API server for the contract tests, which run cases against single parts. Not a public API.
 */
export { ApplyError, conflictCauses, conflictMessage, serverSideApply, trackUpdate } from '../src/apply/apply.ts'
export { findBuiltinKind } from '../src/builtin/builtin.ts'
export { applyBuiltinDefaults } from '../src/builtin/defaults.ts'
export { normalizeBuiltin } from '../src/builtin/normalize.ts'
export type { JsonObject } from '../src/codec/json-object.ts'
export type { ApiObject } from '../src/codec/object-shape.ts'
export { applyJsonPatch } from '../src/patch/json-patch.ts'
export { applyMergePatch } from '../src/patch/merge-patch.ts'
export { PatchError } from '../src/patch/patch-error.ts'
export { applyStrategicMergePatch } from '../src/patch/strategic-merge.ts'
export type { Cause, CompiledSchema, Schema } from '../src/schema/model.ts'
export { compileSchema, prepareSchema } from '../src/schema/schema.ts'
export { validateKind } from '../src/validation/validation.ts'
