/** Last hour: when something changed, as marks on a line of an hour, and what it was. */
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import type { EventView } from '../../api/state.ts'
import { nowMs } from '../data/clock.ts'
import { clusterPath, hostPath } from '../data/paths.ts'
import { Region } from '../parts/region.tsx'
import { Shape } from '../parts/shape.tsx'
import { Clock } from '../parts/time.tsx'
import { countText, eventLook, objectText } from '../parts/words.ts'

const HOUR_MS = 3_600_000
const STEP_MS = 10_000
const QUARTERS = [0, 15, 30, 45, 60] as const

export function LastHourRegion({ events }: { events: readonly EventView[] }): JSX.Element {
  return (
    <Region title="Last hour" class="last-hour" note={<Line events={events} />}>
      <div class="scroll" tabIndex={0} role="group" aria-label="Changes of the last hour">
        {events.length === 0 ? (
          <p class="empty">Nothing changed in the last hour.</p>
        ) : (
          <ol role="list" class="events">
            {events.map((event) => (
              <EventRow key={event.id} event={event} />
            ))}
          </ol>
        )}
      </div>
    </Region>
  )
}

/** The list beneath says the same in words. */
function Line({ events }: { events: readonly EventView[] }): JSX.Element {
  const now = useComputed(() => Math.ceil(nowMs.value / STEP_MS) * STEP_MS)
  const at = (ms: number): string => `${(100 - ((now.value - ms) / HOUR_MS) * 100).toFixed(2)}%`
  return (
    <div class="hour" aria-hidden="true">
      <svg width="100%" height="18" focusable="false">
        <line x1="0" x2="100%" y1="9" y2="9" class="hour-line" />
        {QUARTERS.map((minutes) => (
          <line
            key={minutes}
            x1={`${(minutes / 60) * 100}%`}
            x2={`${(minutes / 60) * 100}%`}
            y1="6"
            y2="12"
            class="hour-line"
          />
        ))}
        {events
          .filter((event) => Date.parse(event.at) > now.value - HOUR_MS)
          .toReversed()
          .map((event) => {
            const { id, at: time, severity } = event
            const { tone } = eventLook(event)
            const isWarning = severity === 'warning'
            const x = at(Date.parse(time))
            return isWarning ? (
              <rect key={id} x={x} y="3" width="3" height="12" transform="translate(-1.5)" class="mark warn" />
            ) : (
              <circle key={id} cx={x} cy="9" r="3.5" class={`mark ${tone}`} />
            )
          })}
      </svg>
      <div class="hour-ends">
        <span>60 min ago</span>
        <span>now</span>
      </div>
    </div>
  )
}

export const EventRow = memo(function EventRow({ event }: { event: EventView }): JSX.Element {
  const { at, reason, object, text, host, cluster, count = 1 } = event
  const { shape, tone, word } = eventLook(event)
  const name = objectText(object)
  const href = host !== undefined ? hostPath(host) : cluster === undefined ? undefined : clusterPath(cluster)
  return (
    <li class="event">
      <span class="event-time">
        <Clock at={at} />
      </span>
      <span class="event-what">
        <Shape name={shape} tone={tone} /> {word}
      </span>
      <span class="event-object" title={name}>
        {href === undefined ? name : <a href={href}>{name}</a>}
      </span>
      <span class="event-reason" title={reason}>
        {reason}
      </span>
      <span class="event-text" title={text}>
        {text}
        {count > 1 && ` (${countText(count, 'time')})`}
      </span>
    </li>
  )
})
