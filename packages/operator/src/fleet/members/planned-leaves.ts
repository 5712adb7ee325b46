/**
 * What the planner rendered for each leaf, by key of the LeafIngress: the syncers apply nothing else. In memory: after a
 * restart the first pass over a root renders its leaves again.
 */
export class PlannedLeaves {
  readonly #contents = new Map<string, string>()
  onChange: (leaf: string) => void = () => undefined

  /** As `contentOf` has it. */
  get(leaf: string): string | undefined {
    return this.#contents.get(leaf)
  }

  set(leaf: string, content: string): void {
    if (this.#contents.get(leaf) === content) return
    this.#contents.set(leaf, content)
    this.onChange(leaf)
  }

  delete(leaf: string): void {
    this.#contents.delete(leaf)
  }
}
