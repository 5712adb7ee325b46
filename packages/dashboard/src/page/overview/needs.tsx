/** Needs you: what is held, refused, failing, expiring or drifting, by harm and then by age, with the command for it. */
import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import type { NeedView } from '../../api/state.ts'
import { clusterPath, hostPath, zonePath } from '../data/paths.ts'
import { Command } from '../parts/command.tsx'
import { Region } from '../parts/region.tsx'
import { Shape } from '../parts/shape.tsx'
import { Age, Clock } from '../parts/time.tsx'
import { countOf, NEED_LOOKS, objectText } from '../parts/words.ts'

interface Props {
  readonly needs: readonly NeedView[]
  /** How many there are in all. */
  readonly total: number
  readonly changedAt: string | undefined
  readonly isFiltered: boolean
}

export function NeedsRegion({ needs, total, changedAt, isFiltered }: Props): JSX.Element {
  return (
    <Region title="Needs you" class="needs" note={total > 0 && <span>{countOf(total)}</span>}>
      <div class="scroll" tabIndex={0} role="group" aria-label="What needs you">
        {/* What is added is read out; ages that change are not. */}
        <div aria-live="polite" aria-relevant="additions">
          {needs.length === 0 ? (
            <p class="empty">
              {isFiltered && total > 0 ? 'Nothing that matches needs you.' : <Nothing changedAt={changedAt} />}
            </p>
          ) : (
            <ul role="list">
              {needs.map((need) => (
                <Need key={need.id} need={need} />
              ))}
            </ul>
          )}
        </div>
        {!isFiltered && total > needs.length && (
          <p class="empty">… and {countOf(total - needs.length)} more: search for a host, cluster or zone.</p>
        )}
      </div>
    </Region>
  )
}

function Nothing({ changedAt }: { changedAt: string | undefined }): JSX.Element {
  return (
    <>
      <Shape name="check" tone="fine" /> Nothing needs you.
      {changedAt !== undefined && (
        <>
          {' '}
          Last change at <Clock at={changedAt} />, <Age key={changedAt} since={changedAt} /> ago.
        </>
      )}
    </>
  )
}

const Need = memo(function Need({ need }: { need: NeedView }): JSX.Element {
  const { severity, reason, what, object, text, since, command } = need
  const { shape, tone, word } = NEED_LOOKS[severity]
  const href = hrefOf(need)
  const name = objectText(object)
  return (
    <li class="need">
      <div class="need-head">
        <Shape name={shape} tone={tone} />
        <strong title={`${reason}: ${what}, ${word}`}>{reason}</strong>{' '}
        <span class="need-age">
          {what}
          {since !== undefined && (
            <>
              {' '}
              <Age key={since} since={since} />
            </>
          )}
        </span>
      </div>
      <div class="need-object" title={name}>
        {href === undefined ? name : <a href={href}>{name}</a>}
      </div>
      <p class="need-text" title={text}>
        {text}
      </p>
      {command !== '' && <Command command={command} />}
    </li>
  )
})

function hrefOf({ host, cluster, zone, what }: NeedView): string | undefined {
  if (host !== undefined) return hostPath(host)
  if (cluster !== undefined) return clusterPath(cluster)
  if (what === 'held') return '/plan'
  return zone === undefined ? undefined : zonePath(zone)
}
