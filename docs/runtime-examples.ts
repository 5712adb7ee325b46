/** The further examples of docs/runtime.md, compiled and not run. */
import { configFromText, connect, Ingress, type Manager, Service } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'

interface Parts {
  render: (services: readonly unknown[]) => string
  deliver: (config: string) => Promise<void>
  namesOf: (object: object) => string[]
  synchronise: (names: ReadonlySet<string> | 'all') => Promise<string[]>
  onPause: (listener: () => void) => () => void
}

export function examples(mgr: Manager, { render, deliver, namesOf, synchronise, onPause }: Parts): void {
  // Many objects into one artefact: any change builds the whole again, debounced.
  mgr.aggregator(
    'proxy',
    { kinds: [Service, Ingress], debounce: '50ms', leader: false },
    (cache) => render(cache.list(Service)),
    deliver,
  )
  // Dirty keys, one debounced pass over all of them; failed keys are passed again with their own back-off.
  mgr
    .keyedAggregator('records', { debounce: '200ms', backoff: { base: '15s', limit: '5m' } })
    .watches(Service, ({ object }) => namesOf(object))
    .triggers((mark) => onPause(() => mark('all')))
    .every('24h', () => 'all')
    .pass(async (names) => ({ failed: await synchronise(names) }))
  // Keys that are not objects, one reconcile each.
  mgr
    .keyedController('clusters')
    .watches(Service, ({ metadata }) => [metadata.namespace ?? ''])
    .reconcile(async (key, ctx) => ctx.log.info({ key }, 'reconciled'))
  // How a kind is cached, and an index.
  mgr.cache(Service, { labelSelector: 'app', namespaces: ['web'] })
  const byAddress = mgr.index(Service, 'address', ({ spec }) => spec?.externalIPs ?? [])
  // Anything else that runs: the context of a reconciler without a key.
  mgr.add('report', async (ctx) => ctx.log.info({ count: ctx.by(byAddress, '192.0.2.1').length }, 'services'), {
    leader: true,
  })
}

export async function test(): Promise<void> {
  await using plane = await ControlPlane.start({ crds: 'config/crd' })
  const cluster = connect(configFromText(plane.kubeconfig()))
  await cluster.close()
}
