/**
 * Parts of the runtime for integration tests and benches that measure one of them alone. Not a public surface.
 */
export { createInformers } from '../cache/informers.ts'
export { Store } from '../cache/store.ts'
export { createRest, type Rest } from '../client/rest.ts'
export { processBudget } from '../watch/decode-budget.ts'
export { createDecoder } from '../watch/decode.ts'
export { createHttpSource } from '../watch/http-source.ts'
export { maskUids } from '../watch/managed-fields.ts'
export { Reflector, type Source } from '../watch/reflector.ts'
