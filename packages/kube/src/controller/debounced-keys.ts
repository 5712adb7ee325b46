/**
 * Keys that changed and then rested: each is passed to `onQuiet` once no further change came for `quietMs`. For observers
 * without a manager; a capability uses a keyed aggregator.
 */
import type { Clock } from '../clock.ts'
import type { Key } from '../object/object.ts'

export interface DebouncedKeysOptions {
  readonly clock: Clock
  readonly quietMs: number
  readonly onQuiet: (key: Key) => void
}

export class DebouncedKeys {
  readonly #options: DebouncedKeysOptions
  readonly #cancels = new Map<Key, () => void>()

  constructor(options: DebouncedKeysOptions) {
    this.#options = options
  }

  /** The key changed: its time starts again. */
  touch(key: Key): void {
    const { clock, quietMs, onQuiet } = this.#options
    this.#cancels.get(key)?.()
    const cancel = clock.after(quietMs, () => {
      this.#cancels.delete(key)
      onQuiet(key)
    })
    this.#cancels.set(key, cancel)
  }

  /** No key is passed on afterwards. */
  close(): void {
    for (const cancel of this.#cancels.values()) cancel()
    this.#cancels.clear()
  }
}
