/** What the parts of the library share. */

/** What `sets`, `strings`, … stand for: a value whose type carries the functions. Each needs a class of its own. */
export class Namespace {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export function fail(message: string): never {
  throw new Error(message)
}

/** Set by the engine when it is loaded: this module must not load it. */
export const OPTIONALS: { none(): unknown; of(value: unknown): unknown } = {
  none: () => undefined,
  of: (value) => value,
}
