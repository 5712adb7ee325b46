/** Flow: from each name to what answers it, as bands or as a table. */
import { useComputed, useSignal } from '@preact/signals'
import type { ReadonlySignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { HostView } from '../../api/state.ts'
import { isFlowTable, query, setQuery } from '../data/location.ts'
import { Region } from '../parts/region.tsx'
import { countOf, countText } from '../parts/words.ts'
import { useVisibleRows, VIRTUAL_ABOVE } from '../parts/visible-rows.ts'
import { flowOf, GROUP_ABOVE } from './flow-blocks.ts'
import { FlowBlockView } from './flow-block.tsx'
import { columnsOf, heightOf, lengthsOf } from './flow-layout.ts'
import { FlowTable } from './flow-table.tsx'
import { FoundRecords } from './found-records.tsx'

export function FlowRegion({
  hosts,
  total,
}: {
  hosts: ReadonlySignal<readonly HostView[]>
  total: number
}): JSX.Element {
  const found = hosts.value.length
  const count = found === total ? countText(total, 'host') : `${countOf(found)} of ${countText(total, 'host')}`
  return (
    <Region
      title="Flow"
      class="flow"
      note={
        <>
          <span>{count}</span>
          <button
            type="button"
            class="toggle"
            aria-pressed={isFlowTable.value}
            onClick={() => setQuery({ flow: isFlowTable.peek() ? undefined : 'table' })}
          >
            Table
          </button>
        </>
      }
    >
      <div class="scroll" tabIndex={0} role="group" aria-label="Hosts and their answers">
        {total === 0 ? (
          <p class="empty">
            No host is declared yet. A host is shown here once an Ingress, HTTPRoute, HTTPProxy, Route, Service or
            DNSEndpoint names it.
          </p>
        ) : found === 0 ? (
          <p class="empty">No host matches.</p>
        ) : isFlowTable.value ? (
          <FlowTable hosts={hosts.value} />
        ) : (
          <FlowChart hosts={hosts} />
        )}
        {query.value !== '' && <FoundRecords />}
      </div>
      {total > 0 && !isFlowTable.value && (
        <p class="legend">
          Width: share of the answers now
          <span class="legend-key held">held</span>
          <span class="legend-key cached">may be in caches</span>
        </p>
      )}
    </Region>
  )
}

function FlowChart({ hosts }: { hosts: ReadonlySignal<readonly HostView[]> }): JSX.Element {
  const flow = useComputed(() => flowOf(hosts.value))
  const frame = useRef<HTMLDivElement>(null)
  const size = useSignal({ width: 680, charPx: 7.2 })
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const measure = (): void => {
      const width = element.clientWidth
      if (width > 0 && width !== size.peek().width) size.value = { width, charPx: characterWidth(element) }
    }
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    measure()
    return () => observer.disconnect()
  }, [])
  const { blocks, more } = flow.value
  const columns = useMemo(() => columnsOf(size.value.width, size.value.charPx, lengthsOf(blocks)), [size.value, blocks])
  const offsets = useMemo(() => {
    const ends = [0]
    for (const block of blocks) ends.push((ends.at(-1) ?? 0) + heightOf(block, columns))
    return ends
  }, [blocks, columns])
  // A host may have a hundred answers: rows count, not blocks.
  const isVirtual = blocks.reduce((rows, { bands }) => rows + Math.max(1, bands.length), 0) > VIRTUAL_ABOVE
  const [list, { from, to, above, below }] = useVisibleRows<HTMLUListElement>(offsets, isVirtual)
  return (
    <div ref={frame} class="flow-frame">
      <ul role="list" ref={list} class="flow-list" style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
        {blocks.slice(from, to).map((block) => (
          <FlowBlockView key={block.key} block={block} columns={columns} />
        ))}
      </ul>
      {more > 0 && (
        <p class="empty">
          {countText(more, 'host')} more {more === 1 ? 'needs' : 'need'} a look:{' '}
          <a href="/?q=state:broken&flow=table">broken</a>, <a href="/?q=state:degraded&flow=table">degraded</a>,{' '}
          <a href="/?q=state:held&flow=table">held</a>. Above {GROUP_ABOVE} hosts, zones are shown.
        </p>
      )}
    </div>
  )
}

/** Of the font of the bands. */
function characterWidth(element: HTMLElement): number {
  const context = document.createElement('canvas').getContext('2d')
  if (context === null) return 7.2
  const { fontSize, fontFamily } = getComputedStyle(element)
  context.font = `${fontSize} ${fontFamily}`
  return context.measureText('0'.repeat(100)).width / 100
}
