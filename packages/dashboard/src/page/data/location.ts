/** The address of the page: each view has a permalink, and filters are in its query. Links are followed without a load. */
import { computed, signal } from '@preact/signals'

export type View =
  | { readonly kind: 'overview' }
  | { readonly kind: 'host'; readonly name: string }
  | { readonly kind: 'plan' }
  | { readonly kind: 'clusters'; readonly name?: string }
  | { readonly kind: 'zones'; readonly name?: string }
  | { readonly kind: 'history' }
  | { readonly kind: 'none' }

const href = signal(location.href)
const url = computed(() => new URL(href.value))

export const path = computed(() => url.value.pathname)
export const view = computed(() => viewOf(path.value))
/** What is searched for. */
export const query = computed(() => url.value.searchParams.get('q') ?? '')
export const isFlowTable = computed(() => url.value.searchParams.get('flow') === 'table')

function viewOf(pathname: string): View {
  const [first = '', ...rest] = pathname.split('/').slice(1)
  const name = decode(rest.join('/'))
  switch (first) {
    case '':
      return { kind: 'overview' }
    case 'hosts':
      return name === '' ? { kind: 'none' } : { kind: 'host', name }
    case 'plan':
      return { kind: 'plan' }
    case 'clusters':
      return { kind: 'clusters', ...(name !== '' && { name }) }
    case 'zones':
      return { kind: 'zones', ...(name !== '' && { name }) }
    case 'history':
      return { kind: 'history' }
    default:
      return { kind: 'none' }
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function go(to: string): void {
  history.pushState(null, '', to)
  href.value = location.href
}

/** Changes the query in place: what is typed makes no history. `undefined` and `''` remove. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  history.replaceState(null, '', withQuery(changes))
  href.value = location.href
}

/** The present address with another query. */
function withQuery(changes: Readonly<Record<string, string | undefined>>): string {
  const next = new URL(url.value)
  for (const [key, value] of Object.entries(changes))
    if (value === undefined || value === '') next.searchParams.delete(key)
    else next.searchParams.set(key, value)
  return `${next.pathname}${next.search}`
}

export function followLinks(): void {
  addEventListener('popstate', () => (href.value = location.href))
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const to = new URL(link.href, location.href)
    if (to.origin !== location.origin || link.target !== '' || to.hash !== '') return
    event.preventDefault()
    go(to.pathname + to.search)
  })
}
