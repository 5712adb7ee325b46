/** The condition `Valid` of an HTTPProxy as it is built: errors and warnings with Contour's types and reasons. */
import type { HTTPProxy, SubCondition } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import { identify, type StatusIntent } from '../../build/status-intent.ts'

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

export class ProxyVerdict {
  readonly proxy: Immutable<HTTPProxy>
  readonly #errors: SubCondition[] = []
  readonly #warnings: SubCondition[] = []

  constructor(proxy: Immutable<HTTPProxy>) {
    this.proxy = proxy
  }

  get isValid(): boolean {
    return this.#errors.length === 0
  }

  error(type: ErrorType, reason: string, message: string): void {
    add(this.#errors, type, reason, message)
  }

  warn(type: ErrorType, reason: string, message: string): void {
    add(this.#warnings, type, reason, message)
  }

  toIntent(): StatusIntent {
    const orphan = this.#errors.find(({ type }) => type === 'Orphaned')
    const message = this.isValid ? 'Valid HTTPProxy' : 'At least one error present, see Errors for details'
    const bySort = (a: SubCondition, b: SubCondition) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
    return {
      kind: 'HTTPProxy',
      ...identify(this.proxy),
      status: {
        currentStatus: this.isValid ? 'valid' : orphan === undefined ? 'invalid' : 'orphaned',
        description: orphan?.message ?? message,
        conditions: [
          {
            type: 'Valid',
            status: this.isValid ? 'True' : 'False',
            reason: this.isValid ? 'Valid' : 'ErrorPresent',
            message,
            ...(this.#errors.length > 0 && { errors: this.#errors.toSorted(bySort) }),
            ...(this.#warnings.length > 0 && { warnings: this.#warnings.toSorted(bySort) }),
          },
        ],
      },
    }
  }
}

/** A proxy that several roots include is examined several times; each error is reported once. */
function add(list: SubCondition[], type: ErrorType, reason: string, text: string): void {
  const message = text.slice(0, MAX_MESSAGE_LENGTH)
  if (list.length >= MAX_ENTRIES) return
  if (list.some((each) => each.type === type && each.reason === reason && each.message === message)) return
  list.push({ type, status: 'True', reason, message })
}
