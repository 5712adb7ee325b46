/** `seamark undrain CLUSTER`: see drain.ts. */
export { buildUndrain as build } from './drain.ts'
