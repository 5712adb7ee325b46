import { describe, expect, it } from 'vitest'
import type { PortFaults } from '../ir/listen-addresses.ts'
import { object, objectsOf } from '../../testing/index.ts'
import { build } from '../build/build.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import { rejectedPorts, withPortFaults } from './port-faults.ts'

interface GatewayStatus {
  conditions: { type: string; status: string; reason: string }[]
  listeners: { name: string; conditions: { type: string; status: string; reason: string; message: string }[] }[]
}

const built = (...ports: number[]) =>
  build(
    objectsOf([
      object('GatewayClass', 'ours', { spec: { controllerName: BUILD_DEFAULTS.controllerName } }),
      object('Gateway', 'a/gw', {
        spec: {
          gatewayClassName: 'ours',
          listeners: ports.map((port, index) => ({ name: `l${index}`, port, protocol: 'HTTP' })),
        },
      }),
    ]),
    BUILD_DEFAULTS,
  )

function statusOf(result: ReturnType<typeof built>, faults: PortFaults) {
  const statuses = withPortFaults(result.statuses, result.ports, faults)
  const found = statuses.find(({ kind }) => kind === 'Gateway')
  const { conditions, listeners } = (found?.status ?? {}) as unknown as GatewayStatus
  const text = (list: GatewayStatus['conditions']) =>
    list
      .filter(({ type }) => type === 'Accepted' || type === 'Programmed')
      .map(({ type, status, reason }) => `${type}=${status} ${reason}`)
  return [text(conditions), ...listeners.map((each) => text(each.conditions))]
}

describe('a port that cannot be bound', () => {
  it('is a condition of its listener and of the Gateway; the other listeners stay', () => {
    const result = built(80, 8_081)
    expect(statusOf(result, new Map())).toEqual([
      ['Accepted=True Accepted', 'Programmed=True Programmed'],
      ['Accepted=True Accepted', 'Programmed=True Programmed'],
      ['Accepted=True Accepted', 'Programmed=True Programmed'],
    ])
    expect(statusOf(result, new Map([['http:8081', 'in use']]))).toEqual([
      ['Accepted=True ListenersNotValid', 'Programmed=True Programmed'],
      ['Accepted=True Accepted', 'Programmed=True Programmed'],
      ['Accepted=False PortUnavailable', 'Programmed=False Invalid'],
    ])
  })

  it('makes a Gateway invalid of which no other listener is served', () => {
    // The first two conflict.
    const result = built(80, 80, 8_081)
    expect(statusOf(result, new Map([['http:8081', 'in use']]))[0]).toEqual([
      'Accepted=False ListenersNotValid',
      'Programmed=False Invalid',
    ])
  })

  it('of Envoy is a listener that Envoy rejected', () => {
    const { ir } = built(80, 8_081, 8_082)
    const rejection = (name: string) => ({ type: 'listener', name, message: 'cannot bind', owners: [] }) as const
    expect(rejectedPorts(ir, [rejection('ingress_http'), rejection('ingress_http_8082')])).toEqual(
      new Map([['http:8082', 'Envoy rejected it: cannot bind']]),
    )
  })
})
