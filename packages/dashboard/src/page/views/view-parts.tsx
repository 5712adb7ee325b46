/** What the views have in common: their title, which is focused when the view is opened, and what could not be read. */
import type { ComponentChildren, JSX } from 'preact'
import { Shape } from '../parts/shape.tsx'

export function Title({ children, note }: { children: ComponentChildren; note?: ComponentChildren }): JSX.Element {
  return (
    <div class="title">
      <h1 tabIndex={-1}>{children}</h1>
      {note !== undefined && <div class="quiet">{note}</div>}
    </div>
  )
}

export function ReadingFault({ fault }: { fault: { readonly code: string; readonly message: string } }): JSX.Element {
  return (
    <p class="notice">
      <Shape name="triangle" tone="warn" /> <code class="code">{fault.code}</code> {fault.message}
    </p>
  )
}
