/**
 * Applied plans are compressed on the thread pool, whose time a virtual clock does not see: with this module, which is imported
 * before the packages, `gzip` and `gunzip` of Node call back at once.
 */
import { syncBuiltinESMExports } from 'node:module'
import zlib from 'node:zlib'

type Done = (error: Error | null, result: Buffer) => void

Object.assign(zlib, {
  gzip: (data: Buffer, ...rest: [Done] | [object, Done]) => answer(rest, (options) => zlib.gzipSync(data, options)),
  gunzip: (data: Buffer, ...rest: [Done] | [object, Done]) => answer(rest, (options) => zlib.gunzipSync(data, options)),
})
syncBuiltinESMExports()

function answer(rest: [Done] | [object, Done], run: (options: object) => Buffer): void {
  if (rest.length === 1) rest[0](null, run({}))
  else rest[1](null, run(rest[0]))
}
