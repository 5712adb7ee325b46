/**
 * `@peculiar/x509` and the polyfill it needs, imported statically: a dynamic import of this module works in the bundle
 * too, where a dynamic import of a CommonJS package has no named exports.
 */
import 'reflect-metadata'
export * as x509 from '@peculiar/x509'
