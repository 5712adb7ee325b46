/** Which rows of a long list are on the screen: only those are in the document. */
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { RefObject } from 'preact'
import { type Visible, visibleRows } from './row-range.ts'

/** Lists up to this long are shown whole. */
export const VIRTUAL_ABOVE = 200
/** Above and below what is visible, px: for a fast scroll, and so that the next row can be focused. */
const MARGIN_PX = 300

/** Follows scrolling of the page and of whatever contains the list. `offsets` of a short list: all of it is visible. */
export function useVisibleRows<E extends HTMLElement>(
  offsets: ArrayLike<number>,
  isVirtual: boolean,
): [RefObject<E | null>, Visible] {
  const ref = useRef<E>(null)
  const range = useSignal({ top: 0, bottom: 1200 })
  useLayoutEffect(() => {
    if (!isVirtual) return undefined
    const measure = (): void => {
      const rect = ref.current?.getBoundingClientRect()
      if (rect === undefined) return
      const [top, bottom] = [-rect.top - MARGIN_PX, innerHeight - rect.top + MARGIN_PX]
      const before = range.peek()
      // A few rows are rendered in advance: not each scrolled pixel renders again.
      if (Math.abs(before.top - top) >= MARGIN_PX / 2 || before.bottom - before.top !== bottom - top)
        range.value = { top, bottom }
    }
    measure()
    addEventListener('scroll', measure, { capture: true, passive: true })
    addEventListener('resize', measure)
    return () => {
      removeEventListener('scroll', measure, { capture: true })
      removeEventListener('resize', measure)
    }
  }, [isVirtual, offsets.length])
  const count = offsets.length - 1
  const visible = isVirtual
    ? visibleRows(offsets, range.value.top, range.value.bottom)
    : { from: 0, to: count, above: 0, below: 0 }
  return [ref, visible]
}
