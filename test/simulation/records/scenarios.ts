/** What users do while records runs: every way in which an RRset comes, changes and goes, and every guard that holds it. */
import { HTTPProxy } from '@seamark/operator'
import { expect } from 'vitest'
import { type RecordsBench, SERVICE_ADDRESS } from './bench.ts'

export interface RecordsScenario {
  readonly title: string
  readonly run: (bench: RecordsBench) => Promise<void>
}

/** Six of them are more than the delete budget, and less than the share at which the breaker opens. */
const MANY = 24
const many = Array.from({ length: MANY }, (_, index) => `n${String(index).padStart(2, '0')}`)
const QUARANTINE_MS = 30 * 60_000

async function publishMany(bench: RecordsBench): Promise<void> {
  for (const name of many) await bench.create(`web/${name}`)
  await bench.eventually(
    'all records',
    async () => bench.names().length,
    (count) => count === MANY,
  )
  await bench.settle()
}

async function createProxy(bench: RecordsBench, name: string): Promise<void> {
  const spec = { routes: [], virtualhost: { fqdn: `${name}.example.test` } } as NonNullable<HTTPProxy['spec']>
  await bench.client.create(HTTPProxy, { metadata: { namespace: 'web', name }, spec })
}

export const recordsScenarios: readonly RecordsScenario[] = [
  {
    title: 'a record is created, retargeted and deleted with its DNSEndpoint',
    run: async (bench) => {
      await using _app = bench.run()
      await bench.create('web/shop')
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.change('web/shop', { targets: ['192.0.2.2', '192.0.2.3'] })
      await bench.expectRecord('shop', '192.0.2.2 192.0.2.3')
      await bench.delete('web/shop')
      await bench.expectRecord('shop', undefined)
    },
  },
  {
    title: 'a record that is there before the manager stays through a restart that writes nothing',
    run: async (bench) => {
      await bench.create('web/shop')
      {
        await using _first = bench.run()
        await bench.expectRecord('shop', '192.0.2.1')
      }
      const second = bench.run()
      await bench.settle()
      if (!bench.stage.isDisturbed) expect(second.writes.count).toBe(0)
      await second.stop()
      await bench.expectRecord('shop', '192.0.2.1')
    },
  },
  {
    title: 'a host that is renamed moves its record',
    run: async (bench) => {
      await using _app = bench.run()
      await bench.create('web/shop')
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.change('web/shop', { host: 'store' })
      await bench.expectRecord('store', '192.0.2.1')
      await bench.expectRecord('shop', undefined)
    },
  },
  {
    title: 'an address that becomes an alias is replaced in one step',
    run: async (bench) => {
      await using _app = bench.run()
      await bench.create('web/shop')
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.change('web/shop', { type: 'CNAME', targets: ['lb.example.net'] })
      await bench.expectRecord('shop', 'lb.example.net.', 'CNAME')
      await bench.expectRecord('shop', undefined, 'A')
    },
  },
  {
    title: 'a DNSEndpoint without targets keeps its record, and a name of another owner is not changed',
    run: async (bench) => {
      await using _app = bench.run()
      await bench.create('web/shop')
      await bench.create('web/foreign')
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.change('web/shop', { targets: [] })
      await bench.settle()
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.expectRecord('foreign', '203.0.113.1')
    },
  },
  {
    title: 'of two DNSEndpoints of one name the older has it, and the younger gets it once the older is deleted',
    run: async (bench) => {
      await using _app = bench.run()
      await bench.create('web/older', { host: 'shop' })
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.stage.clock.advance(2_000)
      await bench.create('other/younger', { host: 'shop', targets: ['192.0.2.9'] })
      await bench.settle()
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.delete('web/older')
      await bench.expectRecord('shop', '192.0.2.9')
    },
  },
  {
    title: 'an HTTPProxy becomes a record, and its deletion removes it',
    run: async (bench) => {
      await using _app = bench.run({ withPublish: true })
      await createProxy(bench, 'shop')
      await bench.expectRecord('shop', SERVICE_ADDRESS)
      await bench.client.delete(HTTPProxy, 'web/shop')
      await bench.expectRecord('shop', undefined)
    },
  },
  {
    title: 'a pause holds every change, and its end applies them',
    run: async (bench) => {
      await using _app = bench.run()
      await bench.create('web/shop')
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.settle()
      await bench.annotate({ 'seamark.io/pause': 'true' })
      await bench.settle()
      await bench.change('web/shop', { targets: ['192.0.2.2'] })
      await bench.create('web/paused')
      await bench.settle()
      expect(bench.names()).toEqual(['shop'])
      await bench.expectRecord('shop', '192.0.2.1')
      await bench.annotate({ 'seamark.io/pause': null })
      await bench.expectRecord('shop', '192.0.2.2')
      await bench.expectRecord('paused', '192.0.2.1')
    },
  },
  {
    title: 'a DNS service that is down for ten minutes gets its changes when it is back',
    run: async (bench) => {
      await using app = bench.run()
      await bench.create('web/shop')
      await bench.expectRecord('shop', '192.0.2.1')
      const repair = bench.zone.fail()
      await bench.change('web/shop', { targets: ['192.0.2.2'] })
      await bench.create('web/new')
      await bench.stage.clock.advance(2 * 60_000)
      const writes = app.writes.count
      await bench.stage.clock.advance(8 * 60_000)
      // The outage is reported once, not once a minute.
      if (!bench.stage.isDisturbed) expect(app.writes.count).toBe(writes)
      repair()
      await bench.expectRecord('shop', '192.0.2.2')
      await bench.expectRecord('new', '192.0.2.1')
    },
  },
]

/** Scenarios with as many sources as a breaker needs. */
export const manyRecordsScenarios: readonly RecordsScenario[] = [
  {
    title: 'a short-lived error in the list of many sources deletes none of their records',
    run: async (bench) => {
      await using _app = bench.run()
      await publishMany(bench)
      await bench.change('web/n00', { targets: ['192.0.2.2'] })
      await bench.expectRecord('n00', '192.0.2.2')
      await bench.settle()
      expect(bench.names()).toEqual(many)
    },
  },
  {
    title: 'two sources deleted while the manager is down go, and the others stay',
    run: async (bench) => {
      {
        await using _app = bench.run()
        await publishMany(bench)
      }
      await bench.delete('web/n00', 'web/n01')
      await using _app = bench.run()
      await bench.expectRecord('n00', undefined)
      await bench.expectRecord('n01', undefined)
      await bench.settle()
      expect(bench.names()).toEqual(many.slice(2))
    },
  },
]

/** Deletions that arrive within one window: how they are cut into windows depends on the fault, their number does not. */
export const budgetScenarios: readonly RecordsScenario[] = [
  {
    title: 'deletions one after the other stay within the delete budget',
    run: async (bench) => {
      await using _app = bench.run()
      await publishMany(bench)
      for (const name of many.slice(0, 6)) {
        await bench.delete(`web/${name}`)
        await bench.stage.clock.advance(20_000)
      }
      await bench.stage.clock.advance(2 * QUARANTINE_MS)
      await bench.eventually(
        'the names that are left',
        async () => bench.names(),
        (names) => names.join() === many.slice(6).join(),
      )
    },
  },
  {
    title: 'most sources deleted while the manager is down are held',
    run: async (bench) => {
      {
        await using _app = bench.run()
        await publishMany(bench)
      }
      await bench.delete(...many.slice(0, 12).map((name) => `web/${name}`))
      await using _app = bench.run()
      await bench.stage.clock.advance(2 * QUARANTINE_MS)
      expect(bench.names()).toEqual(many)
    },
  },
]
