/** The condition `Valid` of an HTTPProxy as it is built: errors and warnings with Contour's types and reasons. */
import type { HTTPProxy, SubCondition } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import { condition, identify, type StatusIntent } from '../../draft/status-intent.ts'

/** Types of Contour's sub-conditions. */
export type ErrorType =
  | 'ServiceError'
  | 'SpecError'
  | 'TLSError'
  | 'VirtualHostError'
  | 'RouteError'
  | 'TCPProxyError'
  | 'IncludeError'
  | 'TCPProxyIncludeError'
  | 'AuthError'
  | 'CORSError'
  | 'PrefixReplaceError'
  | 'RootNamespaceError'
  | 'Orphaned'
  | 'JWTVerificationError'
  | 'IPFilterError'
  | 'RouteConflict'

const MAX_MESSAGE_LENGTH = 32_760
/** An HTTPProxy with thousands of broken routes must not exceed the size limit of objects. */
const MAX_ENTRIES = 100

const NONE: readonly SubCondition[] = []

const VALID_MESSAGE = 'Valid HTTPProxy'
/** Of every object without errors and warnings. */
const VALID: StatusIntent['status'] = {
  currentStatus: 'valid',
  description: VALID_MESSAGE,
  conditions: [condition('Valid', true, 'Valid', VALID_MESSAGE)],
}

const validIntents = new WeakMap<Immutable<HTTPProxy>, StatusIntent>()

/** The status of an object without errors and warnings: made once, and the same object in every build. */
export function validIntent(proxy: Immutable<HTTPProxy>): StatusIntent {
  let intent = validIntents.get(proxy)
  if (intent === undefined) validIntents.set(proxy, (intent = new ProxyVerdict(proxy).toIntent()))
  return intent
}

export class ProxyVerdict {
  readonly proxy: Immutable<HTTPProxy>
  /** Shared while there are none. */
  #errors: readonly SubCondition[] = NONE
  #warnings: readonly SubCondition[] = NONE

  constructor(proxy: Immutable<HTTPProxy>) {
    this.proxy = proxy
  }

  get isValid(): boolean {
    return this.#errors.length === 0
  }

  get isEmpty(): boolean {
    return this.#errors.length + this.#warnings.length === 0
  }

  /** Adds the errors and warnings of another examination of the same object. */
  merge(other: ProxyVerdict): void {
    for (const each of other.#errors) this.#errors = withEntry(this.#errors, each)
    for (const each of other.#warnings) this.#warnings = withEntry(this.#warnings, each)
  }

  error(type: ErrorType, reason: string, message: string): void {
    this.#errors = withEntry(this.#errors, { type, reason, message })
  }

  warn(type: ErrorType, reason: string, message: string): void {
    this.#warnings = withEntry(this.#warnings, { type, reason, message })
  }

  toIntent(): StatusIntent {
    return { kind: 'HTTPProxy', ...identify(this.proxy), status: this.isEmpty ? VALID : this.#status() }
  }

  #status(): StatusIntent['status'] {
    const orphan = this.#errors.find(({ type }) => type === 'Orphaned')
    const message = this.isValid ? VALID_MESSAGE : 'At least one error present, see Errors for details'
    const bySort = (a: SubCondition, b: SubCondition) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
    return {
      currentStatus: this.isValid ? 'valid' : orphan === undefined ? 'invalid' : 'orphaned',
      description: orphan?.message ?? message,
      conditions: [
        {
          ...condition('Valid', this.isValid, this.isValid ? 'Valid' : 'ErrorPresent', message),
          ...(this.#errors.length > 0 && { errors: this.#errors.toSorted(bySort) }),
          ...(this.#warnings.length > 0 && { warnings: this.#warnings.toSorted(bySort) }),
        },
      ],
    }
  }
}

/** A proxy that several roots include is examined several times; each error is reported once. */
function withEntry(
  list: readonly SubCondition[],
  { type, reason, message: text }: Pick<SubCondition, 'type' | 'reason' | 'message'>,
): readonly SubCondition[] {
  const message = text.slice(0, MAX_MESSAGE_LENGTH)
  if (list.length >= MAX_ENTRIES) return list
  if (list.some((each) => each.type === type && each.reason === reason && each.message === message)) return list
  return [...list, { type, status: 'True', reason, message }]
}
