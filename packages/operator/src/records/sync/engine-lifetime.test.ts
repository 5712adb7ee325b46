import type { Client } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { RecordsError } from '../../rrset/error.ts'
import type { Engine } from '../engine.ts'
import { memoryGuardStore } from '../state/guard-state.ts'
import { EngineLifetime, type OpenedRecords } from './engine-lifetime.ts'

/** Only `close` is called by a lifetime. */
function opened(onClose: () => void): OpenedRecords {
  return { engine: { close: async () => onClose() } as Engine, store: memoryGuardStore() }
}

function start(open: (client: Client) => Promise<OpenedRecords>) {
  const lifetime = new EngineLifetime(open)
  const stop = new AbortController()
  const running = lifetime.run({ client: memoryCluster().client, signal: stop.signal })
  running.catch(() => undefined)
  return { lifetime, stop, running }
}

const never = new AbortController().signal

it('a failure to open fails the pass, and the next pass opens the engine', async () => {
  let attempts = 0
  const { lifetime, stop, running } = start(async () => {
    if (++attempts === 1) throw new Error('Secret seamark/tsig does not exist')
    return opened(() => undefined)
  })
  await expect(lifetime.use(never, async () => 'passed')).rejects.toThrow('does not exist')
  expect(await lifetime.use(never, async () => 'passed')).toBe('passed')
  expect(await lifetime.use(never, async () => 'passed')).toBe('passed')
  expect(attempts).toBe(2)
  stop.abort()
  await running
})

it('an invalid configuration ends the runnable, and with it the manager', async () => {
  const { lifetime, running } = start(async () => {
    throw new RecordsError('CONFIG_INVALID', 'records.owner is required')
  })
  await expect(lifetime.use(never, async () => 'passed')).rejects.toThrow('records.owner is required')
  await expect(running).rejects.toThrow('records.owner is required')
})

it('a stop aborts the pass, and the engine is closed when the pass has ended', async () => {
  const order: string[] = []
  const { lifetime, stop, running } = start(async () => opened(() => order.push('closed')))
  const pass = lifetime.use(never, async (_opened, signal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    order.push('pass ended')
  })
  stop.abort()
  await Promise.all([pass, running])
  expect(order).toEqual(['pass ended', 'closed'])
  expect(await lifetime.use(never, async () => 'passed')).toBeUndefined()
})
