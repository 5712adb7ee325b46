/** Shared parts of the function library. */

/** The value of `sets`, `strings`, …: its type carries the functions. Each namespace needs its own class. */
export class Namespace {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export function fail(message: string): never {
  throw new Error(message)
}

/** Set by the engine when it is loaded: this module must not import it. */
export const OPTIONALS: { none(): unknown; of(value: unknown): unknown } = {
  none: () => undefined,
  of: (value) => value,
}
