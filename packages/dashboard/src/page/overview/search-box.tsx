/** Search, in the head of every view. `/` focuses it, Escape clears it, Enter opens the host that it names. */
import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { go, query, setQuery, view } from '../data/location.ts'
import { hostPath } from '../data/paths.ts'
import { state } from '../data/live-state.ts'
import { parseQuery } from './search-query.ts'

export function SearchBox(): JSX.Element {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const focus = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') clear()
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      event.preventDefault()
      field.current?.focus()
      field.current?.select()
    }
    document.addEventListener('keydown', focus)
    return () => document.removeEventListener('keydown', focus)
  }, [])
  useSignalEffect(() => {
    const text = query.value
    // While somebody types, the field is ahead of the address.
    if (field.current !== null && field.current.value.trim() !== text) field.current.value = text
  })
  const clear = (): void => {
    if (field.current !== null) field.current.value = ''
    if (query.peek() !== '') setQuery({ q: undefined })
  }
  return (
    <div role="search" class="search">
      <input
        ref={field}
        type="search"
        aria-label="Search"
        placeholder="host, address, cluster, record"
        title="Words, or host: address: cluster: zone: namespace: state: reason: before one"
        autocomplete="off"
        spellcheck={false}
        maxLength={300}
        onInput={({ currentTarget }) => {
          if (isFilteredByQuery()) setQuery({ q: currentTarget.value.trim() })
        }}
        onKeyDown={({ key, currentTarget }) => {
          if (key === 'Enter') open(currentTarget.value.trim())
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  )
}

/** The page of a host shows the host, whatever is searched for. */
function isFilteredByQuery(): boolean {
  const { kind } = view.peek()
  return kind !== 'host' && kind !== 'none'
}

function open(text: string): void {
  if (text === '') return
  const hosts = state.peek()?.hosts ?? []
  const named = hosts.find(({ name }) => name === text.toLowerCase())
  if (named !== undefined) return go(hostPath(named.name))
  const search = parseQuery(text)
  const [first, second] = firstTwo(hosts, search.host)
  if (first !== undefined && second === undefined) return go(hostPath(first.name))
  if (view.peek().kind !== 'overview') go(`/?${new URLSearchParams({ q: text }).toString()}`)
}

function firstTwo<T>(values: readonly T[], isWanted: (value: T) => boolean): T[] {
  const found: T[] = []
  for (const value of values) {
    if (isWanted(value)) found.push(value)
    if (found.length === 2) break
  }
  return found
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null
}
