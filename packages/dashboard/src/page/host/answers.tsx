/** What servers answer now. A TTL counts down from when the server was asked. */
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import type { ServerAnswerView } from '../../api/host-page.ts'
import { nowMs } from '../data/clock.ts'
import { Shape } from '../parts/shape.tsx'
import { SERVER_LOOKS } from '../parts/words.ts'

export function Answers({ answers }: { answers: readonly ServerAnswerView[] }): JSX.Element {
  if (answers.length === 0)
    return <p class="empty">No DNS server is known that answers this name. `dashboard.resolvers` adds resolvers.</p>
  return (
    <ul role="list" class="servers">
      {answers.map((answer) => (
        <Server key={`${answer.kind} ${answer.server}`} answer={answer} />
      ))}
    </ul>
  )
}

function Server({ answer }: { answer: ServerAnswerView }): JSX.Element {
  const { server, kind, state, fault, at, records } = answer
  const { shape, tone, word } = SERVER_LOOKS[state]
  return (
    <li class="server">
      <div class="server-head">
        <Shape name={shape} tone={tone} />
        <span class="mono">{server}</span> <span class="quiet">{kind}</span> <span class={`word ${tone}`}>{word}</span>
      </div>
      {fault !== undefined && <p class="quiet">{fault}</p>}
      <ul role="list" class="records">
        {records.map(({ type, value, ttl }) => (
          <li key={`${type} ${value}`}>
            <span class="mono record-value">{value}</span> <span class="quiet">{type}</span>{' '}
            <Ttl key={at} ttl={ttl} at={at} />
          </li>
        ))}
      </ul>
    </li>
  )
}

function Ttl({ ttl, at }: { ttl: number; at: string }): JSX.Element {
  const left = useComputed(() => Math.max(0, Math.ceil(ttl - Math.max(0, nowMs.value - Date.parse(at)) / 1000)))
  return (
    <span class="quiet ttl">
      TTL {ttl} → {left} s
    </span>
  )
}
