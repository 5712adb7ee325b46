/** One host or group of the flow: its texts at the places of the layout, and its bands beneath them. */
import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import { Shape } from '../parts/shape.tsx'
import { Until } from '../parts/time.tsx'
import { ANSWER_LOOKS, HELD_LOOK, HOST_LOOKS } from '../parts/words.ts'
import { clusterPath } from '../data/paths.ts'
import type { FlowBand, FlowBlock } from './flow-blocks.ts'
import { type Columns, heightOf, layoutOf, PAD_PX, ROW_PX, type Span, wordOf } from './flow-layout.ts'

interface Props {
  readonly block: FlowBlock
  readonly columns: Columns
}

export const FlowBlockView = memo(function FlowBlockView({ block, columns }: Props): JSX.Element {
  const { name, note, href, state, bands, isHeld, isGroup } = block
  const { rows, paths } = layoutOf(block, columns)
  const height = heightOf(block, columns)
  const look = state === 'as it should be' && isHeld ? HELD_LOOK : HOST_LOOKS[state]
  const nameSpan = columns.name ?? { x: 0, width: 600 }
  return (
    <li class={`block ${isGroup ? 'group' : ''}`} style={{ height: `${height}px` }}>
      <svg class="bands" width="100%" height={height} aria-hidden="true" focusable="false">
        {paths.map(({ d, width, look, isHeld }) => (
          <path
            key={d}
            d={d}
            class={`band ${look} ${isHeld ? 'held' : ''}`}
            stroke-width={look === 'cached' ? 5 : look === 'none' ? 1 : width}
          />
        ))}
      </svg>
      <div
        class="block-name"
        style={
          columns.isStacked ? { top: `${PAD_PX}px`, left: '0', right: '0' } : placeOf(nameSpan, PAD_PX + ROW_PX / 2)
        }
      >
        <Shape name={look.shape} tone={look.tone} />
        <a href={href} title={name}>
          {name}
        </a>
        <span class="sr"> {look.word}</span>
      </div>
      {!columns.isStacked && (
        <div class="block-note" style={placeOf(nameSpan, PAD_PX + ROW_PX * 1.5)} title={note}>
          {note}
        </div>
      )}
      {bands.length === 0 && (
        <div
          class="cell quiet"
          style={placeOf(columns.answer ?? nameSpan, PAD_PX + ROW_PX / 2 + (columns.isStacked ? ROW_PX : 0))}
        >
          <Shape name="dash" tone="quiet" /> no answer
        </div>
      )}
      {bands.map((band, index) => (
        <Band key={band.key} band={band} columns={columns} y={rows[index] ?? 0} isGroup={isGroup} />
      ))}
    </li>
  )
})

function Band({
  band,
  columns,
  y,
  isGroup,
}: {
  band: FlowBand
  columns: Columns
  y: number
  isGroup: boolean
}): JSX.Element {
  const { address, cluster, gateway, service, state, cachedUntil } = band
  const { shape, tone } = ANSWER_LOOKS[state]
  const isQuiet = band.share === 0
  return (
    <div class={isQuiet ? 'answer quiet' : 'answer'}>
      <span class="cell" style={placeOf(columns.answer, y)} title={address}>
        <Shape name={shape} tone={isQuiet && tone === 'fine' ? 'quiet' : tone} />
        <span>{address}</span>
      </span>
      <span class="cell word" style={placeOf(columns.word, y)}>
        {wordOf(band)}
        {cachedUntil !== undefined && <Until at={cachedUntil} before=" " />}
      </span>
      {cluster !== undefined && (
        <span class="cell" style={placeOf(columns.cluster, y)} title={cluster}>
          {isGroup ? <span>{cluster}</span> : <a href={clusterPath(cluster)}>{cluster}</a>}
        </span>
      )}
      {gateway !== undefined && columns.gateway !== undefined && (
        <span class="cell" style={placeOf(columns.gateway, y)} title={gateway}>
          <span>{gateway}</span>
        </span>
      )}
      {service !== undefined && columns.service !== undefined && (
        <span class="cell" style={placeOf(columns.service, y)} title={service}>
          <span>{service}</span>
        </span>
      )}
    </div>
  )
}

function placeOf(span: Span | undefined, y: number): Record<string, string> {
  if (span === undefined) return { display: 'none' }
  return { left: `${span.x}px`, width: `${span.width}px`, top: `${y - ROW_PX / 2}px` }
}
