/**
 * How many octets of request bodies are kept to be sent again, by retries and mirrors: of all clients, and of one connection.
 * What does not fit is streamed.
 */
export interface ReplayLimits {
  readonly maxBytes: number
  readonly maxBytesOfConnection: number
}

export const REPLAY_LIMITS: ReplayLimits = { maxBytes: 64 * 1_048_576, maxBytesOfConnection: 4 * 1_048_576 }

export class ReplayBudget {
  readonly #limits: ReplayLimits
  readonly #connections = new WeakMap<object, number>()
  #bytes = 0

  constructor(limits: ReplayLimits = REPLAY_LIMITS) {
    this.#limits = limits
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @param connection of the client, as an identity */
  open(connection: object): ReplayShare {
    let taken = 0
    let holders = 1
    const add = (bytes: number) => {
      taken += bytes
      this.#bytes += bytes
      this.#connections.set(connection, (this.#connections.get(connection) ?? 0) + bytes)
    }
    return {
      take: (bytes) => {
        const { maxBytes, maxBytesOfConnection } = this.#limits
        const used = this.#connections.get(connection) ?? 0
        if (this.#bytes + bytes > maxBytes || used + bytes > maxBytesOfConnection) return false
        add(bytes)
        return true
      },
      hold: () => void holders++,
      release: () => {
        if (--holders === 0) add(-taken)
      },
    }
  }
}

/** Of one request. */
export interface ReplayShare {
  /** False: there is no room. */
  take(bytes: number): boolean
  /** Another holder, besides the first one; each calls `release` once. */
  hold(): void
  release(): void
}
