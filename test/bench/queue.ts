/**
 * `kube.queue`: what the work queue costs per key, driven as a controller drives it.
 */
import { createQueue } from '@seamark/kube'
import type { Figure } from './figure.ts'

const keyCount = 100_000
const concurrency = 8

async function reconcile(_key: string): Promise<void> {}

/** Microseconds per key: added (every tenth twice), taken, an empty reconcile awaited, done. */
async function measure(): Promise<number> {
  const keys = Array.from({ length: keyCount }, (_, index) => `namespace-${index % 100}/object-${index}`)
  const queue = createQueue()
  const startedAt = performance.now()
  for (const [index, key] of keys.entries()) {
    queue.add(key, { priority: index % 2 === 0 ? 0 : -100 })
    if (index % 10 === 0) queue.add(key)
  }
  let done = 0
  const work = async () => {
    for (let key = queue.take(); key !== undefined; key = queue.take()) {
      await reconcile(key)
      queue.forget(key)
      queue.done(key)
      done++
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  const tookMs = performance.now() - startedAt
  if (done !== keyCount || queue.tracked !== 0) throw new Error(`the queue handed out ${done} of ${keyCount} keys`)
  return (tookMs * 1_000) / keyCount
}

export const figures: Figure[] = [
  {
    name: 'kube.queue',
    what: `${keyCount} keys through the work queue, each`,
    unit: 'µs',
    bound: { max: 4 },
    against: '-',
    measure,
  },
]
