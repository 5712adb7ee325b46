/** A landmark with its heading. */
import type { ComponentChildren, JSX } from 'preact'

interface Props {
  readonly title: string
  readonly class?: string
  /** Beside the heading. */
  readonly note?: ComponentChildren
  readonly children: ComponentChildren
}

export function Region({ title, class: name = '', note, children }: Props): JSX.Element {
  return (
    <section aria-label={title} class={`region ${name}`}>
      <header class="region-head">
        <h2>{title}</h2>
        {note !== undefined && <div class="region-note">{note}</div>}
      </header>
      {children}
    </section>
  )
}
