/**
 * `@peculiar/x509` and its polyfill, imported statically: a dynamic import of this module also works in the bundle,
 * where a dynamic import of a CommonJS package has no named exports.
 */
import 'reflect-metadata'
export * as x509 from '@peculiar/x509'
