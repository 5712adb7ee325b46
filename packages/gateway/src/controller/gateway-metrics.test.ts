import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { condition } from '../draft/status-intent.ts'
import { createGatewayMetrics, type GatewayFacts } from './gateway-metrics.ts'

const NOTHING: GatewayFacts = {
  ir: undefined,
  statuses: [],
  portFaults: 0,
  rejections: [],
  regexExceeded: 0,
  dataPlane: {},
}

async function seriesOf(facts: GatewayFacts | undefined): Promise<string[]> {
  const registry = new Registry()
  createGatewayMetrics(registry, () => facts)
  return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

it('has no series without a gateway, and none of a data plane that is not used', async () => {
  expect(await seriesOf(undefined)).toEqual([])
  const names = (await seriesOf({ ...NOTHING, dataPlane: { answers: new Map([['2xx', 3]]), connections: 1 } })).join(
    '\n',
  )
  expect(names).toContain('seamark_gateway_requests_total{class="2xx"} 3')
  expect(names).not.toContain('xds')
})

it('counts objects of which something is not served: by their own conditions, those of a parent, and those of a listener', async () => {
  const [good, bad] = [
    condition('Accepted', true, 'Accepted', ''),
    condition('Accepted', false, 'NoMatchingParent', ''),
  ]
  const statuses: GatewayFacts['statuses'] = [
    { kind: 'HTTPProxy', key: 'a/good', status: { conditions: [condition('Valid', true, 'Valid', '')] } },
    { kind: 'HTTPProxy', key: 'a/bad', status: { conditions: [condition('Valid', false, 'ErrorPresent', '')] } },
    { kind: 'HTTPRoute', key: 'a/r', status: { parents: [{ conditions: [good] }, { conditions: [bad] }] } },
    { kind: 'Gateway', key: 'a/gw', status: { conditions: [good], listeners: [{ conditions: [bad] }] } },
    { kind: 'Ingress', key: 'a/i', status: {} },
  ]
  const counted = (await seriesOf({ ...NOTHING, statuses })).filter((line) => line.includes('invalid_objects'))
  expect(counted).toEqual([
    'seamark_gateway_invalid_objects{kind="HTTPProxy"} 1',
    'seamark_gateway_invalid_objects{kind="HTTPRoute"} 1',
    'seamark_gateway_invalid_objects{kind="Gateway"} 1',
    'seamark_gateway_invalid_objects{kind="Ingress"} 0',
  ])
})

it('says what Envoys rejected by type, with 0 for those of which they took all', async () => {
  const rejections = [{ type: 'route' as const, name: 'r', message: 'bad', owners: [] }]
  const series = await seriesOf({ ...NOTHING, rejections, dataPlane: { streams: 2 } })
  expect(series).toContain('seamark_gateway_xds_streams 2')
  expect(series).toContain('seamark_gateway_xds_rejected{type="route"} 1')
  expect(series).toContain('seamark_gateway_xds_rejected{type="listener"} 0')
})
