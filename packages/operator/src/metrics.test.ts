import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { createProductMetrics } from './metrics.ts'

it('counts the leaves of all roots by cluster and phase, as they were decided last', async () => {
  const registry = new Registry()
  const metrics = createProductMetrics(registry)
  const counts = async () => {
    const { values = [] } = (await registry.getSingleMetric('seamark_fleet_leaves')?.get()) ?? {}
    const counted = values.filter(({ value }) => value !== 0)
    return Object.fromEntries(counted.map(({ labels, value }) => [`${labels['cluster']} ${labels['phase']}`, value]))
  }
  const [eu1, us1] = [
    { cluster: 'eu1', phase: 'Active' },
    { cluster: 'us1', phase: 'Pending' },
  ]
  metrics.leavesDecided('shop/a', [eu1, us1])
  metrics.leavesDecided('shop/b', [eu1])
  metrics.leavesDecided('shop/b', [eu1])
  expect(await counts()).toEqual({ 'eu1 Active': 2, 'us1 Pending': 1 })
  metrics.leavesDecided('shop/a', [{ ...us1, phase: 'Active' }])
  expect(await counts()).toEqual({ 'eu1 Active': 1, 'us1 Active': 1 })
  metrics.leavesDecided('shop/a', [])
  metrics.leavesDecided('shop/b', [])
  expect(await counts()).toEqual({})
})

it('counts the sources of each kind by the reason of their last decision', async () => {
  const registry = new Registry()
  const metrics = createProductMetrics(registry)
  const counts = async () => {
    const { values = [] } = (await registry.getSingleMetric('seamark_publish_sources')?.get()) ?? {}
    return Object.fromEntries(values.map(({ labels, value }) => [`${labels['kind']} ${labels['reason']}`, value]))
  }
  expect(await counts()).toEqual({})
  metrics.sourceDecided('Ingress', 'shop/a', 'Published')
  metrics.sourceDecided('HTTPProxy', 'shop/a', 'Published')
  metrics.sourceDecided('HTTPProxy', 'shop/b', 'Published')
  metrics.sourceDecided('HTTPProxy', 'shop/b', 'Published')
  expect(await counts()).toEqual({ 'Ingress Published': 1, 'HTTPProxy Published': 2 })
  metrics.sourceDecided('HTTPProxy', 'shop/b', 'HostInvalid')
  // Deleted, and deleted again when the watch repeats it.
  metrics.sourceDecided('Ingress', 'shop/a', undefined)
  metrics.sourceDecided('Ingress', 'shop/a', undefined)
  expect(await counts()).toEqual({ 'Ingress Published': 0, 'HTTPProxy Published': 1, 'HTTPProxy HostInvalid': 1 })
})
