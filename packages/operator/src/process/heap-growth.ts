/**
 * Limits how far V8 lets the heap grow before a full collection. By default the old generation grows to four times its
 * live size, and every request leaves about 10 KB in it (a stream is referenced by its native handle, which young
 * collections treat as live): with 10 000 sources about 50 MB more, without saving CPU time.
 */
import { setFlagsFromString } from 'node:v8'

/** Percent of the live size after the last full collection. */
const GROWTH_PERCENT = 120

export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`)
}
