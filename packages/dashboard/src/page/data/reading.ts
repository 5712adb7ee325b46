/**
 * What one view reads by itself (a host, the plan, the records, the history): again when what it is about has changed, and
 * every few seconds while the page is looked at. What was read stays until something newer is there.
 */
import { useSignal } from '@preact/signals'
import type { ReadonlySignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { requestJson, RequestError } from './requests.ts'

export interface Reading<T> {
  readonly value?: T
  /** Of the last attempt. */
  readonly fault?: { readonly code: string; readonly message: string }
}

const PERIOD_MS = 5000

/** `change`: another value reads again at once, or when the present request is answered. */
export function useReading<T>(path: string, change: unknown): ReadonlySignal<Reading<T>> {
  const reading = useSignal<Reading<T>>({})
  const again = useRef<() => void>(() => undefined)
  useEffect(() => {
    reading.value = {}
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let isReading = false
    let isStale = false
    const read = async (): Promise<void> => {
      clearTimeout(timer)
      if (isReading) {
        isStale = true
        return
      }
      isReading = true
      isStale = false
      try {
        if (!document.hidden) reading.value = { value: await requestJson<T>(path, stop.signal) }
      } catch (error) {
        if (stop.signal.aborted) return
        const fault =
          error instanceof RequestError ? error : { code: 'NoAnswer', message: 'the manager does not answer' }
        reading.value = { ...reading.peek(), fault }
      }
      isReading = false
      timer = setTimeout(() => void read(), isStale ? 0 : PERIOD_MS)
    }
    again.current = () => void read()
    again.current()
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [path])
  const isFirst = useRef(true)
  useEffect(() => {
    if (!isFirst.current) again.current()
    isFirst.current = false
  }, [change])
  return reading
}
