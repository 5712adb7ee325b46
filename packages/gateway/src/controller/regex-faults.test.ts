import type { Clock } from '@seamark/kube'
import { expect, it } from 'vitest'
import { forwardTo, irOf, route } from '../../testing/proxy-fixture.ts'
import type { Route } from '../ir/model.ts'
import { RegexFaults } from './regex-faults.ts'

const routeOf = (namespace: string, index: number): Route =>
  route(forwardTo(['one']), { origin: { kind: 'Ingress', namespace, name: `i${index}`, at: 'spec.rules[0]' } })

function start() {
  const waiting: (() => void)[] = []
  let reports = 0
  const clock = { after: (_ms: number, run: () => void) => (waiting.push(run), () => undefined) } as unknown as Clock
  const faults = new RegexFaults(clock, () => reports++)
  const reported = () => {
    const { findings } = faults.report({ statuses: [], findings: [] })
    return ['tenant', 'victim'].map((name) => findings.filter(({ origin }) => origin.namespace === name).length)
  }
  const pass = () => waiting.splice(0).forEach((run) => run())
  return { faults, reported, pass, reports: () => reports }
}

it('a namespace with very many routes leaves those of others their conditions', () => {
  const { faults, reported } = start()
  for (let index = 0; index < 2_000; index++) faults.add(routeOf('tenant', index))
  faults.add(routeOf('victim', 0))
  expect(reported()).toEqual([100, 1])
  // What is gone makes room.
  faults.retain(irOf([routeOf('tenant', 0), routeOf('victim', 0)]))
  expect(reported()).toEqual([1, 1])
  faults.add(routeOf('tenant', 7))
  expect(reported()).toEqual([2, 1])
})

it('many new routes are reported once', () => {
  const { faults, pass, reports } = start()
  for (let index = 0; index < 50; index++) faults.add(routeOf('tenant', index))
  expect(reports()).toBe(0)
  pass()
  faults.add(routeOf('tenant', 3))
  pass()
  expect(reports()).toBe(1)
})
