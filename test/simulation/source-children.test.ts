/** The simulation kit, proved: one right controller passes everything, three wrong ones are caught. */
import type { InProcessFetch } from '@seamark/apiserver'
import { isThorough } from '@seamark/kit'
import { describe, expect, it } from 'vitest'
import { describeFailure, explore } from './explore.ts'
import type { Plan } from './plan.ts'
import { expectConvergence } from './expect-convergence.ts'
import { inSteps, type Invariant, type Scenario } from './scenario.ts'
import { simulate } from './simulation.ts'
import { sourceChildren, type ConfigMap, type Mistake } from './source-children.ts'

const path = '/api/v1/namespaces/default/configmaps'
const source = (name: string, data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels: { role: 'source' } },
  data,
})

const put = async (fetch: InProcessFetch, name: string, data: Record<string, string>) => {
  const headers = { 'content-type': 'application/apply-patch+yaml' }
  const body = JSON.stringify(source(name, data))
  const response = await fetch(`${path}/${name}?fieldManager=person&force=true`, { method: 'PATCH', headers, body })
  expect(response.ok).toBe(true)
}

const dataOf = (object: ConfigMap | undefined) => object?.data ?? {}

const neverUnexplained: Invariant = {
  name: 'a child goes only when its source stopped wanting it',
  check(environment, { type, before }) {
    const { source: owner, role } = before?.metadata.labels ?? {}
    if (type !== 'delete' || role !== 'child') return undefined
    const key = dataOf(before)['key'] ?? ''
    const isWanted = dataOf(environment.find('ConfigMap', `default/${owner}`))[key] !== undefined
    return isWanted ? `${owner} still wants ${key}` : undefined
  },
}

const scenario = (mistake?: Mistake): Scenario => ({
  name: mistake ?? 'source and children',
  given: [source('old', { a: '1' })],
  play: inSteps({
    controller: sourceChildren(mistake),
    steps: [
      { name: 'create', act: async (fetch) => put(fetch, 'new', { a: '1', b: '2' }) },
      { name: 'change a value', act: async (fetch) => put(fetch, 'new', { a: '3', b: '2' }) },
      { name: 'drop a key', act: async (fetch) => put(fetch, 'new', { a: '3' }) },
      { name: 'delete', act: async (fetch) => void (await fetch(`${path}/old`, { method: 'DELETE' })) },
    ],
  }),
  invariants: () => [neverUnexplained],
})

describe('a right controller', () => {
  it('ends the same whatever goes wrong, and in random mixtures', async () => {
    const everyPlace = isThorough ? { mixtures: 40 } : { samples: 3, crashes: 9, emptyLists: 3, mixtures: 10 }
    expect(await expectConvergence(scenario(), everyPlace)).toBeGreaterThan(isThorough ? 100 : 40)
  })

  it('does the same again for the same seed, and something else for another', async () => {
    const trace = async (seed: number) => {
      const { history, quietMs } = await simulate(scenario(), [{ kind: 'storm' }], seed)
      return JSON.stringify([quietMs, history.map(({ type, key }) => [type, key])])
    }
    const traces: string[] = []
    for (const seed of [7, 7, 8, 9]) traces.push(await trace(seed))
    expect(traces[0]).toBe(traces[1])
    expect(new Set(traces).size).toBeGreaterThan(1)
  })
})

describe('a wrong controller', () => {
  it.each<{ mistake: Mistake; kinds: Plan['kind'][]; fault: RegExp; oracle: string }>([
    {
      mistake: 'deletes on an empty list',
      kinds: ['emptyList', 'shortList'],
      fault: /^(emptyList|shortList)@/,
      oracle: 'invariant',
    },
    { mistake: 'no resync', kinds: ['drop'], fault: /^drop@/, oracle: 'end state' },
    { mistake: 'non-idempotent step', kinds: ['crash'], fault: /^crash@\d+:unanswered/, oracle: 'end state' },
  ])('that $mistake is found', async ({ mistake, kinds, fault, oracle }) => {
    const { failures } = await explore(scenario(mistake), { kinds, mixtures: 0, env: {} })
    const texts = failures.map((failure) => describeFailure(failure, {}))
    const caught = texts.filter((text) => fault.test(/went wrong with (.*):\n/.exec(text)?.[1] ?? ''))
    expect(caught).not.toEqual([])
    expect(caught.join('\n')).toContain(`  ${oracle}: `)
    expect(caught[0]).toMatch(/again: SEED=1 PLAN='.*' WRITE=\d+ npm test$/)
  })
})
