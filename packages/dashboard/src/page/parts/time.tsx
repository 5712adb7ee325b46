/** Times and ages: only their text changes each second, not what contains them. */
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import { durationText, nowMs, timeText } from '../data/clock.ts'

/** `4 min` */
export function Age({ since }: { since: string }): JSX.Element {
  const text = useComputed(() => durationText(nowMs.value - Date.parse(since)))
  return (
    <time dateTime={since} title={since} key={since}>
      {text}
    </time>
  )
}

/** `02:13:41` */
export function Clock({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={at}>
      {timeText(at, nowMs.peek())}
    </time>
  )
}

/** `since 02:13:41, 12 min` */
export function Since({ at }: { at: string }): JSX.Element {
  return (
    <span class="since">
      since <Clock at={at} />, <Age key={at} since={at} />
    </span>
  )
}

/** Seconds until a time, `27 s`; nothing once it is over. */
export function Until({ at, before = '', after = '' }: { at: string; before?: string; after?: string }): JSX.Element {
  const text = useComputed(() => {
    const ms = Date.parse(at) - nowMs.value
    return ms > 0 ? `${before}${durationText(ms)}${after}` : ''
  })
  return <span>{text}</span>
}
