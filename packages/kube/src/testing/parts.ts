/**
 * Internals of the runtime for integration tests and benchmarks. Not a public API.
 */
export { learnDefaults } from '../apply/apply.ts'
export { createInformers } from '../cache/informers.ts'
export { Store } from '../cache/store.ts'
export { createRest, type Rest } from '../client/rest.ts'
export { processBudget } from '../decode/decode-budget.ts'
export { createDecoder } from '../decode/decode.ts'
export { createHttpSource } from '../watch/http-source.ts'
export { maskUids } from '../decode/managed-fields.ts'
export { Reflector, type Source } from '../watch/reflector.ts'
export { MAX_REQUESTED_WAIT_MS } from '../requested-wait.ts'
export type { Exchange, Transport } from '../transport/transport.ts'
