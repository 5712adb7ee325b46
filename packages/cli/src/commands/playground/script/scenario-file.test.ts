import { describe, expect, it } from 'vitest'
import { parseScenario } from './scenario-file.ts'

const scenario = (...steps: unknown[]) => ({ title: 'a scenario', clusters: ['eu1', 'us1'], steps })

describe('a scenario file', () => {
  it('is read with the defaults of its steps', () => {
    const { clusters, roots, steps } = parseScenario(
      scenario(
        { deploy: 'shop/web' },
        { stop: 'us1' },
        { start: { cluster: 'us1', part: 'api' } },
        { delete: 'Ingress shop/shop' },
        { requests: { host: 'shop.fleet.test' } },
        { requests: 'end' },
        { expect: { answers: { 'shop.fleet.test': ['eu1'] }, failedRequests: 0, within: 5 } },
      ),
    )
    expect([clusters, roots]).toEqual([['eu1', 'us1'], 'class'])
    expect(steps).toMatchObject([
      { do: 'deploy', service: 'shop/web', clusters: undefined },
      { do: 'stop', cluster: 'us1', part: 'cluster' },
      { do: 'start', cluster: 'us1', part: 'api' },
      { do: 'delete', kind: 'Ingress', name: 'shop/shop' },
      { do: 'requests', host: 'shop.fleet.test', perSecond: 10, tries: 'one' },
      { do: 'endRequests' },
      { do: 'expect', withinMs: 5_000, expectations: { answers: { 'shop.fleet.test': ['eu1'] }, failedRequests: 0 } },
    ])
  })

  it.each([
    [{ title: 'x' }, 'steps is a list of steps'],
    [scenario({ explode: 'eu1' }), 'step 1: explode is no step'],
    [scenario({ deploy: 'shop/web' }, { drain: 'mars1' }), 'step 2: there is no cluster mars1'],
    [scenario({ stop: { cluster: 'eu1', part: 'roof' } }), 'step 1: part is one of api, gateway, backends, cluster'],
    [scenario({ drain: 'eu1', stop: 'us1' }), 'step 1: a step has exactly one key'],
    [scenario({ expect: { answer: {} } }), 'step 1: expect has no field answer'],
    [scenario({ expect: { answers: { 'a.test': 'eu1' } } }), 'step 1: answers is a list'],
    [scenario({ apply: [{ kind: 'Ingress' }] }), 'step 1: an object has no kind or metadata.name'],
    [scenario({ restart: 'hub' }), 'step 1: only the manager can be restarted'],
    [scenario({ delete: 'Ingress' }), 'step 1: delete is KIND NAMESPACE/NAME'],
    [scenario({ deploy: 'web' }), 'step 1: the service is NAMESPACE/NAME'],
  ])('with a mistake is refused with its place: %j', (value, message) => {
    expect(() => parseScenario(value)).toThrow(message)
  })
})
