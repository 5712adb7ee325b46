/**
 * CPU time of the main thread in ms, without the helper threads of V8: what a slice of work cost, however often the
 * kernel gave the core to another process meanwhile.
 *
 * Linux keeps it per thread in `schedstat`, as of the last tick of the scheduler; getrusage, which is behind
 * `process.cpuUsage`, brings the running thread's count up to date first.
 */
import { openSync, readSync } from 'node:fs'

let file: number | undefined
const buffer = Buffer.alloc(64)

export function threadCpuMs(): number {
  file ??= openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
  process.cpuUsage()
  const length = readSync(file, buffer, 0, buffer.length, 0)
  const [nanoseconds = ''] = buffer.toString('latin1', 0, length).split(' ', 1)
  return Number(nanoseconds) / 1e6
}
