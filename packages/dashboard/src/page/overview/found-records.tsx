/** Records of zones that match the search: not every record is a host. */
import { useSignal, useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import type { RecordsPage } from '../../api/plan-page.ts'
import { query } from '../data/location.ts'
import { requestJson } from '../data/requests.ts'
import { countOf } from '../parts/words.ts'

const SHOWN = 5
/** After the last key. */
const PAUSE_MS = 250

export function FoundRecords(): JSX.Element | null {
  const found = useSignal<RecordsPage | undefined>(undefined)
  useSignalEffect(() => {
    const search = query.value
    const stop = new AbortController()
    const timer = setTimeout(() => {
      const path = `/api/v1/records?${new URLSearchParams({ search, limit: String(SHOWN) }).toString()}`
      requestJson<RecordsPage>(path, stop.signal).then(
        (page) => (found.value = page),
        () => undefined,
      )
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  })
  if (found.value === undefined || found.value.total === 0) return null
  const { records, total } = found.value
  return (
    <div class="found-records">
      <h3>
        <a href={`/zones?${new URLSearchParams({ q: query.value }).toString()}`}>
          {countOf(total)} {total === 1 ? 'record' : 'records'}
        </a>
      </h3>
      <ul role="list">
        {records.map(({ name, type, values }) => (
          <li key={`${name} ${type}`} class="mono">
            {name} {type} {values.join(', ')}
          </li>
        ))}
      </ul>
    </div>
  )
}
