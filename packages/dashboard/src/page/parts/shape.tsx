/** States by shape, so that none is known by its colour alone; the word stands beside each. 12 × 12 px. */
import type { JSX } from 'preact'
import type { ShapeName, Tone } from './words.ts'

const DRAWINGS: Readonly<Record<ShapeName, JSX.Element>> = {
  disc: <circle cx="6" cy="6" r="4" fill="currentColor" />,
  half: (
    <>
      <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.5" />
      <path d="M6 2a4 4 0 0 0 0 8z" fill="currentColor" />
    </>
  ),
  ring: <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.5" />,
  triangle: <path d="M6 1.2 11.3 10.5H.7z" fill="currentColor" />,
  square: <rect x="1.8" y="1.8" width="8.4" height="8.4" fill="currentColor" />,
  dashed: <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.5" stroke-dasharray="2 1.6" />,
  diamond: <path d="M6 1 11 6 6 11 1 6z" fill="none" stroke="currentColor" stroke-width="1.5" />,
  check: <path d="M1.8 6.4 4.8 9.4 10.4 2.8" fill="none" stroke="currentColor" stroke-width="1.8" />,
  held: <path d="M3.2 2v8M8.8 2v8" stroke="currentColor" stroke-width="2.4" />,
  dash: <path d="M2.5 6h7" stroke="currentColor" stroke-width="1.6" />,
}

export function Shape({ name, tone }: { name: ShapeName; tone: Tone }): JSX.Element {
  return (
    <svg class={`shape ${tone}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" focusable="false">
      {DRAWINGS[name]}
    </svg>
  )
}
