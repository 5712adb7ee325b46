/**
 * The one name of undici that is used, imported statically: a dynamic import of this module gives it in the bundle too,
 * where a dynamic import of a CommonJS package has no named exports.
 */
export { Pool } from 'undici'
