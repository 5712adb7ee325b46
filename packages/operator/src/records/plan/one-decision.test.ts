/**
 * The manager, `plan` and `explain` report one decision: they call one function with the same facts. The manager plans
 * in passes over the names that changed, `plan` over the whole zone, `explain` over one name.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  applied,
  NOW,
  owned,
  plan,
  record,
  source,
  want,
  type PlanFixture,
  ZONE,
} from '../../../testing/plan-fixture.ts'
import type { ObservedRRset } from '../../rrset/rrset.ts'
import { EMPTY_STATE, type GuardState } from '../state/guard-state.ts'
import { namesToReview } from './held-set.ts'
import type { Desired, Plan } from './plan.ts'

const MINUTE = 60_000
const labels = Array.from({ length: 24 }, (_, index) => `n${String(index).padStart(2, '0')}`)
const uid = (label: string) => `s-${label}.${ZONE}`

/** What happened to one name since it was published. */
const fate = fc.constantFrom('kept', 'gone', 'retargeted', 'unseen', 'unwanted', 'changed', 'wildcard')
const scenario = fc.record({
  fates: fc.array(fate, { minLength: labels.length, maxLength: labels.length }),
  /** The pass in which the manager receives the change of a name. */
  passes: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: labels.length, maxLength: labels.length }),
})

function fixtureOf(
  fates: readonly string[],
): Required<Pick<PlanFixture, 'desired' | 'sources'>> & { observed: ObservedRRset[] } {
  const desired: Desired[] = []
  const gone = new Set<string>()
  const present = new Set<string>()
  for (const [index, label] of labels.entries()) {
    const of = source(uid(label), { revision: fates[index] === 'changed' ? '2' : '1' })
    const address = fates[index] === 'kept' || fates[index] === 'wildcard' ? '192.0.2.1' : '192.0.2.9'
    if (fates[index] === 'gone') gone.add(of.uid)
    else if (fates[index] !== 'unseen') present.add(of.uid)
    if (fates[index] === 'wildcard') desired.push(want(record(`*.${label}`, 'A', [address]), of))
    if (['kept', 'retargeted', 'changed', 'wildcard'].includes(fates[index] ?? ''))
      desired.push(want(record(label, 'A', [address]), of))
  }
  const observed = labels.flatMap((label) =>
    owned(record(label, 'A', ['192.0.2.1']), { source: uid(label), revision: '1' }),
  )
  const requesting = new Set(desired.map(({ source: { uid: id } }) => id))
  return { desired, observed, sources: { present, gone, requesting } }
}

const decisions = ({ changes, refused }: Plan, names?: ReadonlySet<string>) =>
  [
    ...changes.map(({ name, type, op }) => `${name} ${type} ${op} passes`),
    ...refused.map(({ name, type, op, code, set, since }) => `${name} ${type} ${op} ${code} ${set} ${since}`),
  ]
    .filter((line) => names?.has(line.slice(0, line.indexOf(' '))) ?? true)
    .toSorted()

it('of the manager in passes, of a plan of the whole zone, and of one name', () => {
  fc.assert(
    fc.property(scenario, ({ fates, passes }) => {
      const { desired, sources, observed: before } = fixtureOf(fates)
      let observed = before
      let state: GuardState = { ...EMPTY_STATE, ownedNames: labels.length, ownedSources: labels.length }
      const scopes = [0, 1, 2, 3].map((pass) => {
        const inPass = labels.filter((_, index) => passes[index] === pass)
        return new Set(inPass.flatMap((label) => [`${label}.${ZONE}`, `*.${label}.${ZONE}`]))
      })
      for (let pass = 0; scopes.length > 0; pass++) {
        expect(pass).toBeLessThan(20)
        const scope = scopes.shift() ?? new Set()
        const now = NOW + pass * 1_000
        const held = state.held
        const mine = desired.filter(({ set }) => scope.has(set.name))
        const made = plan({ observed, desired: mine, sources, state, scope, now, number: now })
        observed = applied(observed, made.changes)
        state = made.state
        const again = namesToReview(held, state.held)
        if (again.size > 0) scopes.push(again)
      }
      const now = NOW + MINUTE
      const facts = { observed, desired, sources, state, now, number: now }
      const whole = plan(facts)
      // What the manager persisted is what `plan` reports, and no write is left.
      expect(whole.changes).toEqual([])
      expect(decisions(whole)).toEqual(
        state.held
          .map(({ name, type, op, code, set, since }) => `${name} ${type} ${op} ${code} ${set} ${since}`)
          .toSorted(),
      )
      for (const label of labels) {
        for (const name of [`${label}.${ZONE}`, `*.${label}.${ZONE}`]) {
          const scope = new Set([name])
          const mine = desired.filter(({ set }) => scope.has(set.name))
          expect(decisions(plan({ ...facts, desired: mine, scope }))).toEqual(decisions(whole, scope))
        }
      }
    }),
    { numRuns: 300 },
  )
})
