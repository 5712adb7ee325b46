/**
 * A table of rows of one height, of which only the visible ones are in the document when there are many. In a narrow window
 * each row is a block of lines, `column: value`; roles are given, because another `display` takes them away.
 */
import type { ComponentChildren, JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { isNarrow } from './window-width.ts'
import { useVisibleRows, VIRTUAL_ABOVE } from './visible-rows.ts'

export interface Column<T> {
  readonly title: string
  /** Width as a track of a CSS grid. */
  readonly width: string
  readonly cell: (row: T) => ComponentChildren
  /** Text of the whole value, where it may be cut. */
  readonly tip?: (row: T) => string
  readonly isNumber?: boolean
  /** Names the row. */
  readonly isHead?: boolean
}

/** An array, or what makes a row only when it is visible. */
export interface Rows<T> {
  readonly length: number
  readonly at: (index: number) => T | undefined
}

interface Props<T> {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: Rows<T>
  readonly keyOf: (row: T) => string
  readonly empty: ComponentChildren
  readonly classOf?: (row: T) => string
}

const ROW_PX = 30
const LINE_PX = 22
const BLOCK_PAD_PX = 16

export function Table<T>({ label, columns, rows, keyOf, empty, classOf }: Props<T>): JSX.Element {
  const height = isNarrow.value ? columns.length * LINE_PX + BLOCK_PAD_PX : ROW_PX
  const offsets = useMemo(
    () => Array.from({ length: rows.length + 1 }, (_, row) => row * height),
    [rows.length, height],
  )
  const isVirtual = rows.length > VIRTUAL_ABOVE
  const [ref, { from, to, above, below }] = useVisibleRows<HTMLTableSectionElement>(offsets, isVirtual)
  const visible = Array.from({ length: to - from }, (_, index) => rows.at(from + index)).filter(
    (row) => row !== undefined,
  )
  if (rows.length === 0) return <p class="empty">{empty}</p>
  return (
    <table role="table" aria-label={label} aria-rowcount={rows.length + 1} class="table">
      <thead role="rowgroup">
        <tr role="row" aria-rowindex={1} style={{ gridTemplateColumns: columns.map(({ width }) => width).join(' ') }}>
          {columns.map(({ title, isNumber }) => (
            <th key={title} role="columnheader" scope="col" class={isNumber === true ? 'number' : ''}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup" ref={ref} style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
        {visible.map((row, index) => (
          <tr
            key={keyOf(row)}
            role="row"
            aria-rowindex={from + index + 2}
            class={classOf?.(row) ?? ''}
            style={{
              height: `${height}px`,
              gridTemplateColumns: isNarrow.value ? '' : columns.map(({ width }) => width).join(' '),
            }}
          >
            {columns.map((column) => (
              <Cell key={column.title} column={column} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Cell<T>({ column, row }: { column: Column<T>; row: T }): JSX.Element {
  const { title, cell, tip, isNumber, isHead } = column
  const props = {
    'data-title': title,
    class: isNumber === true ? 'number' : '',
    ...(tip !== undefined && { title: tip(row) }),
  }
  return isHead === true ? (
    <th role="rowheader" scope="row" {...props}>
      <span class="value">{cell(row)}</span>
    </th>
  ) : (
    <td role="cell" {...props}>
      <span class="value">{cell(row)}</span>
    </td>
  )
}
