//! Bar charts as SVG, written by hand: one or two panels of horizontal bars side by side. The card has a background of
//! its own, so that it can be read on a light page and on a dark one.

use crate::report;

pub struct Panel {
    pub title: String,
    /// What the figures are, with their unit.
    pub unit: String,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub label: String,
    pub value: f64,
    pub decimals: usize,
    pub is_ours: bool,
}

const WIDTH: f64 = 880.0;
const MARGIN: f64 = 24.0;
const GAP: f64 = 36.0;
const ROW: f64 = 26.0;
const THICKNESS: f64 = 16.0;
/// Where the first bar begins.
const TOP: f64 = 112.0;
/// About the width of a bold character of 13 pixels.
const CHARACTER: f64 = 7.6;

const STYLE: &str = "\
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 17px; font-weight: 600 }
.panel { font-weight: 600 }
.small { font-size: 12px; fill: #59636e }
.ours { font-weight: 600 }
.card { fill: #ffffff; stroke: #d0d7de }
.axis { stroke: #d0d7de }
.bar { fill: #afb8c1 }
.bar.ours { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .small { fill: #9198a1 }
  .card { fill: #0d1117; stroke: #3d444d }
  .axis { stroke: #3d444d }
  .bar { fill: #656c76 }
  .bar.ours { fill: #4493f8 }
}
";

pub fn svg(title: &str, panels: &[Panel], small_print: &str) -> String {
    let rows = panels.iter().map(|panel| panel.bars.len()).max().unwrap_or(0) as f64;
    let bottom = TOP + rows * ROW;
    let height = bottom + 44.0;
    let each = (WIDTH - 2.0 * MARGIN - GAP * (panels.len() - 1) as f64) / panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
        escaped(title),
        WIDTH - 1.0,
        height - 1.0,
    );
    svg += &text("title", MARGIN, 36.0, "start", title);
    for (index, panel) in panels.iter().enumerate() {
        svg += &draw(panel, MARGIN + index as f64 * (each + GAP), each);
    }
    svg += &text("small", MARGIN, bottom + 26.0, "start", small_print);
    svg + "</svg>\n"
}

fn draw(panel: &Panel, left: f64, width: f64) -> String {
    let texts: Vec<String> =
        panel.bars.iter().map(|b| report::number(b.value, b.decimals)).collect();
    let longest = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0) as f64 * CHARACTER
    };
    let labels = longest(&mut panel.bars.iter().map(|bar| &bar.label));
    let start = left + labels + 10.0;
    let room = width - labels - 10.0 - longest(&mut texts.iter()) - 8.0;
    let greatest = panel.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let mut svg = text("panel", left, 68.0, "start", &panel.title);
    svg += &text("small", left, 88.0, "start", &panel.unit);
    for (row, (bar, value)) in panel.bars.iter().zip(&texts).enumerate() {
        let middle = TOP + (row as f64 + 0.5) * ROW;
        let length = if greatest > 0.0 { room * bar.value.max(0.0) / greatest } else { 0.0 };
        let class = if bar.is_ours { "ours" } else { "" };
        svg += &text(class, start - 8.0, middle + 4.5, "end", &bar.label);
        svg += &format!(
            "<rect class=\"bar {class}\" x=\"{start:.1}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{THICKNESS}\" rx=\"2\"/>\n",
            middle - THICKNESS / 2.0,
        );
        svg += &text(class, start + length + 6.0, middle + 4.5, "start", value);
    }
    let end = TOP + panel.bars.len() as f64 * ROW;
    svg + &format!("<path class=\"axis\" d=\"M{start:.1} {:.1}V{end:.1}\"/>\n", TOP)
}

fn text(class: &str, x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = escaped(text);
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: lengths are in proportion, ours is marked, and no text breaks the markup.
    #[test]
    fn bars_are_as_long_as_their_values() {
        let bar =
            |label: &str, value, is_ours| Bar { label: label.into(), value, decimals: 1, is_ours };
        let bars = vec![bar("a & b", 2000.0, true), bar("c", 1000.0, false)];
        let panel = Panel { title: "p".into(), unit: "µs".into(), bars };
        let svg = svg("1 < 2", &[panel], "small");
        let lengths: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<rect class=\"bar"))
            .map(|line| line.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()))
            .map(|width| width.and_then(|width| width.parse().ok()).expect("a width"))
            .collect();
        assert_eq!(lengths.len(), 2);
        assert!((lengths[0] - 2.0 * lengths[1]).abs() < 0.2, "{lengths:?}");
        assert!(svg.contains("1 &lt; 2") && svg.contains("a &amp; b") && svg.contains("2 000.0"));
        assert_eq!(svg.matches("\"bar ours\"").count(), 1);
    }
}
