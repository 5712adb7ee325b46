/**
 * The only import of undici, as a static one: a dynamic import of this module also works in the bundle, where a dynamic
 * import of a CommonJS package has no named exports.
 */
export { Pool } from 'undici'
