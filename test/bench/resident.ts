/** Resident memory of this program as the kernel counts it; `getrusage` begins with the size of the process that started it. */
import { readFileSync } from 'node:fs'

export function residentBytes(name: 'VmHWM' | 'VmRSS'): number {
  const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  if (kilobytes === undefined) throw new Error(`the kernel does not report ${name}`)
  return Number(kilobytes) * 1024
}
