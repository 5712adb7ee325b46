/** Targets of a host: what each gets of the answers, and how healthy it was in the last hour. */
import type { JSX } from 'preact'
import type { HealthChange, TargetView } from '../../api/host-page.ts'
import { clusterPath } from '../data/paths.ts'
import { Shape } from '../parts/shape.tsx'
import { Since } from '../parts/time.tsx'
import { countText, type Look, objectText, shareText } from '../parts/words.ts'

const HOUR_MS = 3_600_000

const HEALTH_LOOKS: Readonly<Record<TargetView['health'], Look>> = {
  healthy: { shape: 'disc', tone: 'fine', word: 'healthy' },
  unhealthy: { shape: 'triangle', tone: 'bad', word: 'unhealthy' },
  unknown: { shape: 'dashed', tone: 'quiet', word: 'health not known' },
}

export function Targets({ targets, at }: { targets: readonly TargetView[]; at: string }): JSX.Element {
  if (targets.length === 0) return <p class="empty">This host has no targets.</p>
  return (
    <ul role="list" class="targets">
      {targets.map((target) => (
        <Target key={`${target.name} ${target.address}`} target={target} at={at} />
      ))}
    </ul>
  )
}

function Target({ target, at }: { target: TargetView; at: string }): JSX.Element {
  const {
    name,
    address,
    cluster,
    weight,
    priority,
    region,
    owner,
    share,
    isPublished,
    health,
    since,
    text,
    reason,
    history,
  } = target
  const { shape, tone, word } = HEALTH_LOOKS[health]
  const settings = [
    isPublished ? `${shareText(share)} of answers` : 'not published',
    ...(weight === undefined ? [] : [`weight ${weight}`]),
    ...(priority === undefined ? [] : [`priority ${priority}`]),
    ...(region === undefined ? [] : [region]),
  ]
  return (
    <li class="target">
      <div class="target-head">
        <Shape name={shape} tone={tone} />
        <span class="mono">{address}</span>
        {cluster === undefined ? <span class="quiet">{name}</span> : <a href={clusterPath(cluster)}>{cluster}</a>}
        <span class={`word ${tone}`}>{word}</span>
      </div>
      <HealthHistory history={history} at={at} />
      <p>
        {settings.join(', ')}
        {since !== undefined && (
          <>
            {', '}
            <Since at={since} />
          </>
        )}
      </p>
      <p class="quiet">
        {reason !== undefined && <code class="code">{reason}</code>}
        {text}
        {owner !== undefined && ` (${objectText(owner)})`}
      </p>
    </li>
  )
}

/** A low bar: healthy. A high one: unhealthy. None: not known. */
function HealthHistory({ history, at }: { history: readonly HealthChange[]; at: string }): JSX.Element | null {
  if (history.length === 0) return null
  const end = Date.parse(at)
  const start = end - HOUR_MS
  const x = (ms: number): number => ((Math.max(start, Math.min(end, ms)) - start) / HOUR_MS) * 100
  const recent = history.filter((change) => Date.parse(change.at) > start).length
  return (
    <svg
      class="history-bar"
      width="100%"
      height="14"
      role="img"
      aria-label={`${countText(recent, 'change')} of health in the last hour`}
      focusable="false"
    >
      <line x1="0" x2="100%" y1="13.5" y2="13.5" class="hour-line" />
      {history.map((change, index) => {
        const next = history[index + 1]
        const from = x(Date.parse(change.at))
        const to = next === undefined ? 100 : x(Date.parse(next.at))
        const height = change.health === 'unhealthy' ? 14 : change.health === 'healthy' ? 5 : 0
        if (to <= from || height === 0) return null
        return (
          <rect
            key={change.at}
            x={`${from}%`}
            width={`${to - from}%`}
            y={14 - height}
            height={height}
            class={change.health}
          />
        )
      })}
    </svg>
  )
}
