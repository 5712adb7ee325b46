/**
 * What is never false while records works, whatever goes wrong. Judged from the store and the zone alone, never from the
 * guard state that the program keeps.
 */
import type { DNSEndpoint } from '@seamark/operator'
import type { Invariant, TestEnvironment, Write } from '../scenario.ts'
import { isMarker, type RRsetObject, rrsetKey } from './simulated-zone.ts'

/** The documented defaults (docs/records.md): five names, or a tenth of those owned, per ten minutes. */
const DELETE_FLOOR = 5
const DELETE_SHARE = 0.1
const WINDOW_MS = 10 * 60_000

const rrsetOf = (object: Write['before']) => (object as RRsetObject | undefined)?.rrset
const canonical = (name: string): string => `${name.toLowerCase().replace(/\.$/, '')}.`

/** Every endpoint that a DNSEndpoint asks for, of objects that are not being deleted. */
function wanted(environment: TestEnvironment): DNSEndpoint['spec']['endpoints'] {
  return (environment.list('DNSEndpoint') as readonly DNSEndpoint[])
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap(({ spec }) => spec.endpoints)
}

/** Data RRsets only: markers follow them. */
function isData({ kind, key }: Write): boolean {
  return kind === 'RRset' && !isMarker(key)
}

/** Fresh for each run: some of them keep what they saw. `foreign`: names that others put into the zone. */
export function recordsInvariants(clock: () => number, foreign: ReadonlySet<string>): readonly Invariant[] {
  const everWanted = new Map<string, Set<string>>()
  const owned = new Set<string>()
  const deletions: { readonly name: string; readonly atMs: number }[] = []
  return [
    {
      name: 'a name that a DNSEndpoint wants is not deleted',
      check(environment, write) {
        const before = rrsetOf(write.before)
        if (!isData(write) || write.type !== 'delete' || before === undefined) return undefined
        const asking = wanted(environment).filter(({ dnsName }) => canonical(dnsName) === before.name)
        const isReplaced = asking.length > 0 && asking.every(({ recordType }) => recordType !== before.type)
        return asking.length > 0 && !isReplaced ? `${write.key} was deleted and is still wanted` : undefined
      },
    },
    {
      name: 'an RRset holds what its DNSEndpoint asked for at some time',
      check(environment, write) {
        for (const { dnsName, recordType, targets } of wanted(environment)) {
          const key = rrsetKey({ name: canonical(dnsName), type: recordType })
          const known = everWanted.get(key) ?? new Set()
          everWanted.set(key, known.add([...targets].toSorted().join(' ')))
        }
        const after = rrsetOf(write.after)
        if (!isData(write) || after === undefined) return undefined
        const values = after.type === 'CNAME' ? after.values.map((value) => value.replace(/\.$/, '')) : after.values
        const isKnown = everWanted.get(write.key)?.has([...values].toSorted().join(' ')) === true
        return isKnown && values.length > 0 ? undefined : `${write.key} ${values.join(' ')} was never asked for`
      },
    },
    {
      name: 'RRsets of others stay as they are',
      check: (_, { kind, key }) =>
        kind === 'RRset' && foreign.has(key.split(' ', 1)[0] ?? '') ? `${key} is not ours` : undefined,
    },
    {
      name: 'no more names go within ten minutes than the delete budget allows',
      check(environment, write) {
        const name = rrsetOf(write.before ?? write.after)?.name
        if (!isData(write) || name === undefined) return undefined
        if (write.type !== 'delete') {
          owned.add(name)
          return undefined
        }
        // A change of type deletes an RRset, and keeps its name.
        if (wanted(environment).some(({ dnsName }) => canonical(dnsName) === name)) return undefined
        const now = clock()
        deletions.push({ name, atMs: now })
        const recent = new Set(deletions.filter(({ atMs }) => now - atMs < WINDOW_MS).map((each) => each.name))
        const allowance = Math.max(DELETE_FLOOR, Math.floor(owned.size * DELETE_SHARE))
        return recent.size > allowance
          ? `${recent.size} names went within ten minutes, ${allowance} of ${owned.size} may`
          : undefined
      },
    },
  ]
}
