/**
 * What the holder of a bearer token may read: TokenReview, then SubjectAccessReview for each kind and namespace that is asked
 * about, kept for 60 s.
 *
 * Guarantees: a right that is not known is not given; a token that is not known to be valid has none; tokens are not stored, only
 * their hashes.
 */
import { createHash } from 'node:crypto'
import { type Client, kind, type Obj } from '@seamark/kube'

interface TokenReview extends Obj {
  spec: { token: string }
  status?: { authenticated?: boolean; user?: UserInfo; error?: string }
}

interface UserInfo {
  username?: string
  uid?: string
  groups?: string[]
  extra?: Record<string, string[]>
}

interface SubjectAccessReview extends Obj {
  spec: {
    resourceAttributes: { verb: string; group: string; resource: string; namespace?: string; name?: string }
    user?: string
    uid?: string
    groups?: string[]
    extra?: Record<string, string[]>
  }
  status?: { allowed?: boolean }
}

const TokenReview = kind<TokenReview>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
})

const SubjectAccessReview = kind<SubjectAccessReview>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  namespaced: false,
})

const SelfSubjectAccessReview = kind<SubjectAccessReview>({
  ...SubjectAccessReview,
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
})

/** Whether this process may; false when it cannot be asked. */
export async function mayThisProcess(
  client: Pick<Client, 'create'>,
  resourceAttributes: SubjectAccessReview['spec']['resourceAttributes'],
): Promise<boolean> {
  const review: SubjectAccessReview = { metadata: {}, spec: { resourceAttributes } }
  const answer = await client.create(SelfSubjectAccessReview, review).catch(() => undefined)
  return answer?.status?.allowed === true
}

/** `dnsendpoints.externaldns.k8s.io`; of the core group: `services`. */
type Resource = string

export interface Question {
  readonly verb: 'get' | 'list'
  readonly resource: Resource
  /** Undefined: in every namespace, or of the cluster. */
  readonly namespace?: string
}

/** Of one user, or of everybody on this machine. */
export interface Rights {
  /** Equal for those who may read the same. */
  readonly key: string
  /** False also while it is not known: call `ensure` before. */
  may(question: Question): boolean
}

export const ALL_RIGHTS: Rights = { key: '*', may: () => true }

const KEPT_MS = 60_000
/** A flood of tokens that are not valid. */
const REFUSED_KEPT_MS = 10_000
const MAX_USERS = 1_000
const MAX_TOKEN_OCTETS = 16_384
const CONCURRENCY = 16

export interface Session {
  readonly user: UserInfo
  /** Asks for what is not known or older than 60 s; rejects when the API server cannot be asked. */
  ensure(questions: readonly Question[], signal: AbortSignal): Promise<Rights>
}

interface Known {
  readonly atMs: number
  readonly session: Promise<UserSession | undefined>
}

export class Sessions {
  readonly #client: Pick<Client, 'create'>
  readonly #nowMs: () => number
  /** By the hash of the token. */
  readonly #known = new Map<string, Known>()

  /** `nowMs`: monotonic. */
  constructor(client: Pick<Client, 'create'>, nowMs: () => number = () => performance.now()) {
    this.#client = client
    this.#nowMs = nowMs
  }

  /** Undefined: the token is not valid. Rejects when that is not known. */
  async of(token: string): Promise<Session | undefined> {
    if (token === '' || token.length > MAX_TOKEN_OCTETS) return undefined
    const hash = createHash('sha256').update(token).digest('base64url')
    const now = this.#nowMs()
    const known = this.#known.get(hash)
    if (known !== undefined) {
      const session = await known.session
      if (now - known.atMs < (session === undefined ? REFUSED_KEPT_MS : KEPT_MS)) return session
    }
    const former = await known?.session
    const entry: Known = { atMs: now, session: this.#review(token, former) }
    this.#known.delete(hash)
    this.#known.set(hash, entry)
    for (const first of this.#known.keys()) {
      if (this.#known.size <= MAX_USERS) break
      this.#known.delete(first)
    }
    try {
      return await entry.session
    } catch (error) {
      if (this.#known.get(hash) === entry) this.#known.delete(hash)
      throw error
    }
  }

  async #review(token: string, former: UserSession | undefined): Promise<UserSession | undefined> {
    const { status } = await this.#client.create(TokenReview, { metadata: {}, spec: { token } })
    const { authenticated = false, user } = status ?? {}
    if (!authenticated || user?.username === undefined || user.username === '') return undefined
    // Rights that are not older than 60 s stay known.
    return former !== undefined && JSON.stringify(former.user) === JSON.stringify(user)
      ? former
      : new UserSession(this.#client, user, this.#nowMs)
  }
}

class UserSession implements Session {
  readonly #client: Pick<Client, 'create'>
  readonly user: UserInfo
  readonly #nowMs: () => number
  readonly #answers = new Map<string, { readonly isAllowed: boolean; readonly atMs: number }>()

  constructor(client: Pick<Client, 'create'>, user: UserInfo, nowMs: () => number) {
    this.#client = client
    this.user = user
    this.#nowMs = nowMs
  }

  async ensure(questions: readonly Question[], signal: AbortSignal): Promise<Rights> {
    const everywhere = questions.map(({ verb, resource }): Question => ({ verb, resource }))
    await this.#ask(everywhere, signal)
    // Who may read all namespaces may read each.
    await this.#ask(
      questions.filter(({ verb, resource }) => !this.#isAllowed({ verb, resource })),
      signal,
    )
    const asked = [...everywhere, ...questions].filter((each) => this.#isAllowed(each)).map(textOf)
    const allowed = new Set(asked)
    return {
      key: [...allowed].sort().join(' '),
      may: ({ verb, resource, namespace }) =>
        allowed.has(textOf({ verb, resource })) ||
        (namespace !== undefined && allowed.has(textOf({ verb, resource, namespace }))),
    }
  }

  #isAllowed(question: Question): boolean {
    return this.#answers.get(textOf(question))?.isAllowed === true
  }

  async #ask(questions: readonly Question[], signal: AbortSignal): Promise<void> {
    const now = this.#nowMs()
    const distinct = new Map(questions.map((question) => [textOf(question), question]))
    const open = [...distinct].filter(([text]) => now - (this.#answers.get(text)?.atMs ?? -KEPT_MS) >= KEPT_MS)
    const next = open.values()
    const work = async (): Promise<void> => {
      for (const [text, question] of next)
        this.#answers.set(text, { isAllowed: await this.#review(question, signal), atMs: now })
    }
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, open.length) }, work))
  }

  async #review({ verb, resource, namespace }: Question, signal: AbortSignal): Promise<boolean> {
    const [plural = '', ...group] = resource.split('.')
    const { username, uid, groups, extra } = this.user
    const review: SubjectAccessReview = {
      metadata: {},
      spec: {
        resourceAttributes: {
          verb,
          group: group.join('.'),
          resource: plural,
          ...(namespace !== undefined && { namespace }),
        },
        ...(username !== undefined && { user: username }),
        ...(uid !== undefined && { uid }),
        ...(groups !== undefined && { groups }),
        ...(extra !== undefined && { extra }),
      },
    }
    const { status } = await this.#client.create(SubjectAccessReview, review, { signal })
    return status?.allowed === true
  }
}

function textOf({ verb, resource, namespace }: Question): string {
  return `${verb} ${resource} ${namespace ?? '*'}`
}
