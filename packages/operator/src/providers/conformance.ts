/**
 * The conformance kit: the requirements on every provider, as a list of cases without a test framework, so that it runs in
 * vitest, in `seamark provider conformance`, and in the CI of a provider's author.
 *
 * Every case uses `conformance-…` names of one zone, restores the zone, and describes each failure. For a capability that
 * a provider lacks, the kit checks that it is declared as absent.
 */
import { ProviderError } from '../rrset/error.ts'
import type { SetChange } from '../rrset/set-change.ts'
import {
  canonicalSet,
  compareSets,
  isInvalid,
  type ObservedRRset,
  printSet,
  type RRset,
  sameSet,
} from '../rrset/rrset.ts'
import type { Provider, ProviderZone } from './provider.ts'

export interface ConformanceCase {
  readonly title: string
  readonly run: (subject: ConformanceSubject) => Promise<void>
}

export interface ConformanceSubject {
  readonly provider: Provider
  readonly zone: ProviderZone
  readonly signal: AbortSignal
  /** A set that the service refuses; by default an A record with an invalid address. */
  readonly badValue?: RRset
}

export class ConformanceError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ConformanceError'
  }
}

function must(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ConformanceError(message)
}

function set(zone: ProviderZone, label: string, type: string, values: string[], ttl = 300): RRset {
  const made = canonicalSet({ name: `conformance-${label}.${zone.name}`, type, ttl, values })
  if (isInvalid(made)) throw new ConformanceError(made.invalid)
  return made
}

const create = (to: RRset): SetChange => ({ from: undefined, to })
const remove = (from: RRset): SetChange => ({ from, to: undefined })

async function readNames(subject: ConformanceSubject, sets: readonly RRset[]): Promise<ObservedRRset[]> {
  const names = new Set(sets.map(({ name }) => name))
  const found = await subject.provider.read(subject.zone, names, subject.signal)
  return found.filter(({ name }) => names.has(name)).toSorted(compareSets)
}

async function mustHold(
  subject: ConformanceSubject,
  sets: readonly RRset[],
  absent: readonly RRset[] = [],
): Promise<void> {
  const found = await readNames(subject, [...sets, ...absent])
  for (const expected of sets) {
    const there = found.find(({ name, type }) => name === expected.name && type === expected.type)
    must(
      sameSet(there, expected),
      `wrote ${printSet(expected)}, read ${there === undefined ? 'nothing' : printSet(there)}`,
    )
  }
  for (const gone of absent) {
    const there = found.find(({ name, type }) => name === gone.name && type === gone.type)
    must(there === undefined, `${gone.name} ${gone.type} should be gone, but is read`)
  }
}

/** Writes, checks, and always cleans up. */
async function withSets(subject: ConformanceSubject, sets: readonly RRset[], body: () => Promise<void>): Promise<void> {
  const { provider, zone, signal } = subject
  await applyAll(subject, sets.map(create))
  try {
    await body()
  } finally {
    const left = await readNames(subject, sets)
    if (left.length > 0) await provider.apply(zone, left.map(remove), signal)
  }
}

/** Splits the batch as the provider requires: a provider without transactions takes one name at a time. */
async function applyAll({ provider, zone, signal }: ConformanceSubject, batch: readonly SetChange[]): Promise<void> {
  const size = provider.capabilities.isAtomic ? provider.capabilities.maxChanges : 1
  for (let at = 0; at < batch.length; at += size) await provider.apply(zone, batch.slice(at, at + size), signal)
}

async function refusal(action: Promise<unknown>, what: string): Promise<ProviderError> {
  try {
    await action
  } catch (error) {
    if (error instanceof ProviderError) return error
    throw new ConformanceError(`${what} must fail with a ProviderError, not with ${String(error)}`, { cause: error })
  }
  throw new ConformanceError(`${what} must fail`)
}

const SAMPLES: readonly (readonly [string, string[]])[] = [
  ['A', ['192.0.2.1', '192.0.2.2']],
  ['AAAA', ['2001:db8::1', '2001:db8::2']],
  ['CNAME', ['target.conformance.test.']],
  ['TXT', ['"plain"', '"with \\"quotes\\", a ; semicolon and a \\\\ backslash"']],
  ['MX', ['10 mail.conformance.test.']],
  ['SRV', ['0 5 443 srv.conformance.test.']],
]

/** What no zone can hold, as labels below the zone: the marker of a legal name may be such a name. */
const IMPOSSIBLE: readonly (readonly [string, string])[] = [
  ['a label of 64 octets', 'x'.repeat(64)],
  ['a name of more than 255 octets', `conformance-${'x'.repeat(48)}${`.${'x'.repeat(60)}`.repeat(4)}`],
]

export const CONFORMANCE: readonly ConformanceCase[] = [
  {
    title: 'lists the zone, with a canonical name and a stable id',
    async run({ provider, zone, signal }) {
      const zones = await provider.zones(signal)
      const found = zones.find(({ id }) => id === zone.id)
      must(found !== undefined, `zones() does not list ${zone.id}`)
      must(
        found.name === zone.name && zone.name.endsWith('.'),
        `the zone's name is '${found.name}', wanted '${zone.name}'`,
      )
    },
  },
  ...SAMPLES.map(([type, values]) => ({
    title: `writes a ${type} set, reads it back byte for byte, and deletes it`,
    async run(subject: ConformanceSubject) {
      const made = set(subject.zone, type.toLowerCase(), type, values)
      await withSets(subject, [made], async () => mustHold(subject, [made]))
      await mustHold(subject, [], [made])
    },
  })),
  {
    title: 'writes a wildcard, and reads it under its own name only',
    async run(subject) {
      const made = { ...set(subject.zone, 'w', 'A', ['192.0.2.1']), name: `*.conformance-w.${subject.zone.name}` }
      const other = { ...made, name: `x.conformance-w.${subject.zone.name}` }
      await withSets(subject, [made], async () => mustHold(subject, [made], [other]))
    },
  },
  {
    title: 'writes a long TXT value of several strings',
    async run(subject) {
      const made = set(subject.zone, 'long', 'TXT', [`"${'a'.repeat(255)}" "${'b'.repeat(100)}"`])
      await withSets(subject, [made], async () => mustHold(subject, [made]))
    },
  },
  {
    title: 'replaces values and TTL in one change',
    async run(subject) {
      const before = set(subject.zone, 'update', 'A', ['192.0.2.1', '192.0.2.2'], 300)
      const after = set(subject.zone, 'update', 'A', ['192.0.2.2', '192.0.2.3'], 60)
      await withSets(subject, [before], async () => {
        await subject.provider.apply(subject.zone, [{ from: before, to: after }], subject.signal)
        await mustHold(subject, [after])
      })
    },
  },
  {
    title: 'changes the TTL alone',
    async run(subject) {
      const before = set(subject.zone, 'ttl', 'A', ['192.0.2.1'], 300)
      const after = { ...before, ttl: 61 }
      await withSets(subject, [before], async () => {
        await subject.provider.apply(subject.zone, [{ from: before, to: after }], subject.signal)
        await mustHold(subject, [after])
      })
    },
  },
  {
    title: 'leaves other types and other names alone',
    async run(subject) {
      const stay = [set(subject.zone, 'stay', 'AAAA', ['2001:db8::9']), set(subject.zone, 'stay2', 'A', ['192.0.2.9'])]
      const leave = set(subject.zone, 'stay', 'A', ['192.0.2.1'])
      await withSets(subject, stay, async () => {
        await subject.provider.apply(subject.zone, [create(leave)], subject.signal)
        await subject.provider.apply(subject.zone, [remove(leave)], subject.signal)
        await mustHold(subject, stay, [leave])
      })
    },
  },
  {
    title: 'reads the names asked for, completely, and the whole zone',
    async run(subject) {
      const made = ['r1', 'r2', 'r3'].flatMap((label) => [
        set(subject.zone, label, 'A', ['192.0.2.1']),
        set(subject.zone, label, 'TXT', ['"x"']),
      ])
      await withSets(subject, made, async () => {
        await mustHold(subject, made)
        const all = await subject.provider.read(subject.zone, 'all', subject.signal)
        for (const expected of made) {
          must(
            all.some((there) => sameSet(there, expected)),
            `read('all') lacks ${printSet(expected)}`,
          )
        }
        const two = await subject.provider.read(subject.zone, new Set([made[0]?.name ?? '']), subject.signal)
        must(two.filter(({ name }) => name === made[0]?.name).length === 2, 'a read of one name gives all its types')
      })
    },
  },
  {
    title: 'reads the other names when one of them is no name of DNS',
    async run(subject) {
      const made = set(subject.zone, 'beside', 'A', ['192.0.2.1'])
      await withSets(subject, [made], async () => {
        const asked = new Set([`a-${'x'.repeat(63)}.${subject.zone.name}`, made.name])
        const found = await subject.provider.read(subject.zone, asked, subject.signal)
        must(
          found.some((there) => sameSet(there, made)),
          'a name that cannot exist is absent, and does not fail the read of the others',
        )
      })
    },
  },
  {
    title: 'replaces an address by a CNAME in one batch, when it has transactions',
    async run(subject) {
      if (!subject.provider.capabilities.isAtomic) return
      const before = set(subject.zone, 'switch', 'A', ['192.0.2.1'])
      const after = set(subject.zone, 'switch', 'CNAME', ['target.conformance.test.'])
      await withSets(subject, [before], async () => {
        await subject.provider.apply(subject.zone, [create(after), remove(before)], subject.signal)
        await mustHold(subject, [after], [before])
        await subject.provider.apply(subject.zone, [create(before), remove(after)], subject.signal)
        await mustHold(subject, [before], [after])
      })
    },
  },
  {
    title: 'writes all of a batch or nothing, when it has transactions, and says `rejected`',
    async run(subject) {
      if (!subject.provider.capabilities.isAtomic) return
      const good = set(subject.zone, 'good', 'A', ['192.0.2.1'])
      const bad = subject.badValue ?? { ...set(subject.zone, 'bad', 'A', []), values: ['not-an-address'] }
      const error = await refusal(
        subject.provider.apply(subject.zone, [create(good), create(bad)], subject.signal),
        'a batch with a bad record',
      )
      try {
        must(error.outcome === 'rejected', `a bad record is 'rejected', not '${error.outcome}' (${error.message})`)
        await mustHold(subject, [], [good])
      } finally {
        const left = await readNames(subject, [good])
        if (left.length > 0) await subject.provider.apply(subject.zone, left.map(remove), subject.signal)
      }
    },
  },
  ...IMPOSSIBLE.map(([what, labels]) => ({
    title: `says \`rejected\` to ${what}, writes nothing with it, and goes on with the others`,
    async run(subject: ConformanceSubject) {
      const { provider, zone, signal } = subject
      const good = set(zone, 'possible', 'A', ['192.0.2.1'])
      const bad: RRset = { ...set(zone, 'impossible', 'TXT', ['"x"']), name: `${labels}.${zone.name}` }
      const batch = provider.capabilities.isAtomic ? [create(good), create(bad)] : [create(bad)]
      const error = await refusal(provider.apply(zone, batch, signal), `a batch with ${what}`)
      must(error.outcome === 'rejected', `${what} is 'rejected', not '${error.outcome}' (${error.message})`)
      await mustHold(subject, [], [good])
      await withSets(subject, [good], async () => mustHold(subject, [good]))
    },
  })),
  {
    title: 'compares before it writes, when it says so: a moved base is `moved`, and nothing is written',
    async run(subject) {
      if (!subject.provider.capabilities.comparesAndSwaps) return
      const { provider, zone, signal } = subject
      const present = set(zone, 'cas', 'A', ['192.0.2.1'])
      const wrong = { ...present, values: ['192.0.2.7'] }
      const next = { ...present, values: ['192.0.2.8'] }
      const fresh = set(zone, 'cas2', 'A', ['192.0.2.1'])
      await withSets(subject, [present], async () => {
        // Without transactions a batch is one name.
        const first = provider.capabilities.isAtomic ? [create(fresh)] : []
        const attempts: [string, SetChange[]][] = [
          ['an update of values that are not there', [...first, { from: wrong, to: next }]],
          ['a create of what exists', [...first, create(next)]],
          ['a delete of values that are not there', [...first, remove(wrong)]],
        ]
        for (const [what, batch] of attempts) {
          const error = await refusal(provider.apply(zone, batch, signal), what)
          must(error.outcome === 'moved', `${what} is 'moved', not '${error.outcome}' (${error.message})`)
          await mustHold(subject, [present], [fresh])
        }
      })
    },
  },
  {
    title: 'takes a batch of many names',
    async run(subject) {
      const size = Math.min(40, Math.max(1, Math.floor(subject.provider.capabilities.maxChanges)))
      const made = Array.from({ length: size }, (_, index) =>
        set(subject.zone, `many-${index}`, 'A', [`192.0.2.${index + 1}`]),
      )
      await withSets(subject, made, async () => mustHold(subject, made))
    },
  },
  {
    title: 'refuses a zone that is not there, and writes nothing',
    async run(subject) {
      const nowhere: ProviderZone = { id: 'conformance-nowhere.test.', name: 'conformance-nowhere.test.' }
      const error = await refusal(
        subject.provider.read(nowhere, 'all', subject.signal),
        'a read of a zone that is not there',
      )
      must(error.outcome !== 'moved', 'a missing zone is not a moved base')
    },
  },
  {
    title: 'stops when its signal aborts',
    async run(subject) {
      const made = set(subject.zone, 'aborted', 'A', ['192.0.2.1'])
      await refusal(
        subject.provider.read(subject.zone, new Set([made.name]), AbortSignal.abort()).then(
          // A provider that answers from memory has nothing to abort.
          () => {
            throw new ProviderError('OutcomeUnknown', 'unknown', 'answered at once')
          },
        ),
        'an aborted read',
      )
    },
  },
]
