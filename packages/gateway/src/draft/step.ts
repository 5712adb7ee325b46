/**
 * A step of a build, such as one HTTPProxy: it reads objects and adds to the draft. Steps are recorded, and a step whose
 * reads give the same objects as before is replayed instead of computed: a build costs what changed. An object is computed
 * when it is new, recorded when it is seen again, and replayed from then on: the first build of a cluster records nothing.
 *
 * Guarantees: a replay adds what the computation would add, because a step depends on nothing but its reads and the settings,
 * and objects are immutable. Records live as long as the object that they belong to.
 */
import type { Immutable, Key, Kind, Obj } from '@seamark/kube/object'
import type { Certificate, Cluster } from '../ir/model.ts'
import type { Draft, Finding } from './draft.ts'
import type { BuildSettings, Objects } from './input.ts'
import type { Parts } from './turns.ts'

/** What steps change: the draft, and what belongs to their kind of objects. */
export interface StepTarget {
  readonly draft: Draft
}

type Effect<T> = (target: T) => void

type Read =
  | { readonly what: 'object'; readonly kind: Kind; readonly key: Key; readonly found: Immutable<Obj> | undefined }
  | { readonly what: 'list'; readonly kind: Kind; readonly found: readonly Immutable<Obj>[] }
  | { readonly what: 'certificate'; readonly secret: Key; readonly found: Certificate | undefined }

interface Recorded<T> {
  readonly settings: BuildSettings
  readonly reads: Read[]
  readonly effects: Effect<T>[]
}

/** The last record of each object of a kind; `seen`: it was computed once. */
export type StepRecords<T> = WeakMap<object, Recorded<T> | 'seen'>

export interface StepContext<T> {
  readonly objects: Objects
  readonly settings: BuildSettings
  readonly target: T
}

/** Effects that are replayed in one part. */
const PART = 500

/**
 * Runs the step of `subject`, in parts. What `compute` throws is thrown, and nothing is recorded then.
 * @param compute reads the step alone, and changes the target by `act` and `draft` of the step alone
 */
export function runStep<T extends StepTarget>(
  records: StepRecords<T>,
  subject: object,
  context: StepContext<T>,
  compute: (step: Step<T>) => Parts<unknown>,
): Parts<unknown> {
  if (records.has(subject)) return recordOrReplay(records, subject, context, compute)
  records.set(subject, 'seen')
  return compute(new Step(context.objects, context.target, undefined))
}

function* recordOrReplay<T extends StepTarget>(
  records: StepRecords<T>,
  subject: object,
  { objects, settings, target }: StepContext<T>,
  compute: (step: Step<T>) => Parts<unknown>,
): Parts<void> {
  const before = records.get(subject)
  if (before !== undefined && before !== 'seen' && before.settings === settings && areSame(objects, before.reads)) {
    for (const [index, effect] of before.effects.entries()) {
      effect(target)
      if (index % PART === PART - 1) yield
    }
    return
  }
  const record: Recorded<T> = { settings, reads: [], effects: [] }
  yield* compute(new Step(objects, target, record))
  records.set(subject, record)
}

/** The objects and the draft as a step sees them. A class: a large cluster has thousands of steps. */
export class Step<T extends StepTarget> implements Objects, DraftSink {
  readonly #objects: Objects
  readonly #target: T
  readonly #record: Recorded<T> | undefined

  constructor(objects: Objects, target: T, record: Recorded<T> | undefined) {
    this.#objects = objects
    this.#target = target
    this.#record = record
  }

  act(effect: Effect<T>): void {
    this.#record?.effects.push(effect)
    effect(this.#target)
  }

  get<O extends Obj>(kind: Kind<O>, key: Key): Immutable<O> | undefined {
    const found = this.#objects.get(kind, key)
    this.#record?.reads.push({ what: 'object', kind, key, found })
    return found
  }

  list<O extends Obj>(kind: Kind<O>): readonly Immutable<O>[] {
    const found = this.#objects.list(kind)
    this.#record?.reads.push({ what: 'list', kind, found })
    return found
  }

  served(secret: Key): Certificate | undefined {
    const found = this.#objects.served?.(secret)
    this.#record?.reads.push({ what: 'certificate', secret, found })
    return found
  }

  addCluster(cluster: Cluster): string {
    if (this.#record === undefined) return this.#target.draft.addCluster(cluster)
    this.act(({ draft }) => void draft.addCluster(cluster))
    return cluster.name
  }

  addCertificate(certificate: Certificate): string {
    if (this.#record === undefined) return this.#target.draft.addCertificate(certificate)
    this.act(({ draft }) => void draft.addCertificate(certificate))
    return certificate.name
  }

  addRoute(...route: Parameters<Draft['addRoute']>): void {
    if (this.#record === undefined) this.#target.draft.addRoute(...route)
    else this.act(({ draft }) => draft.addRoute(...route))
  }

  claimTls(...tls: Parameters<Draft['claimTls']>): void {
    this.act(({ draft }) => draft.claimTls(...tls))
  }

  setTcp(...tcp: Parameters<Draft['setTcp']>): void {
    this.act(({ draft }) => void draft.setTcp(...tcp))
  }

  setRateLimit(...limit: Parameters<Draft['setRateLimit']>): void {
    this.act(({ draft }) => draft.setRateLimit(...limit))
  }

  report(finding: Finding): void {
    this.act(({ draft }) => draft.report(finding))
  }
}

function areSame(objects: Objects, reads: readonly Read[]): boolean {
  for (const read of reads) if (!isSame(objects, read)) return false
  return true
}

function isSame(objects: Objects, read: Read): boolean {
  switch (read.what) {
    case 'object':
      return objects.get(read.kind, read.key) === read.found
    case 'list': {
      const now = objects.list(read.kind)
      return now.length === read.found.length && now.every((each, index) => each === read.found[index])
    }
    case 'certificate':
      return objects.served?.(read.secret) === read.found
  }
}

/** What a step may do with a draft: no answer depends on other steps. */
export interface DraftSink extends Pick<
  Draft,
  'addCluster' | 'addCertificate' | 'addRoute' | 'claimTls' | 'setRateLimit' | 'report'
> {
  setTcp(...tcp: Parameters<Draft['setTcp']>): void
}
