//! A page, written as HTML.

use super::{About, Cell, Fact, Figure, Page, PageTable, Part};
use evenkeel_op::obeyed::turns;

const STYLE: &str = include_str!("style.css");

pub(super) fn page(page: &Page) -> String {
    let title = escaped(&page.title);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    let about = &page.about;
    let made = [about.when.as_str(), about.program.as_str()];
    let made: Vec<&str> = made.into_iter().filter(|text| !text.is_empty()).collect();
    if !made.is_empty() {
        html.push_str(&element("p", "when", &made.join(" · ")));
    }
    for sentence in &page.lead {
        html.push_str(&element("p", "lead", sentence));
    }
    headline(&mut html, &page.headline);
    for one in &page.parts {
        part(&mut html, one);
    }
    again(&mut html, about);
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

/// Makes words harmless, and keeps lines from beginning with the sign of percent. Not for what is copied from a page.
fn words(text: &str) -> String {
    escaped(text).replace(" %", "\u{a0}%")
}

/// Makes a text harmless, within elements and within attributes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Not allowed in a page, whoever sent it.
            control if control.is_control() && !control.is_ascii_whitespace() => {
                safe.push('\u{fffd}')
            }
            // Nor what would have a statement look like another one.
            turning if turns(turning) => safe.extend(turning.escape_unicode()),
            other => safe.push(other),
        }
    }
    safe
}

fn element(name: &str, class: &str, text: &str) -> String {
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let text = match name {
        "pre" => escaped(text),
        _ => words(text),
    };
    format!("<{name}{class}>{text}</{name}>\n")
}

fn headline(html: &mut String, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    html.push_str("<dl class=\"headline\">\n");
    for fact in facts {
        html.push_str(&format!(
            "<div><dt>{}</dt><dd>{}</dd></div>\n",
            words(&fact.name),
            words(&fact.value)
        ));
    }
    html.push_str("</dl>\n");
}

fn part(html: &mut String, part: &Part) {
    match part {
        Part::Heading(text) => html.push_str(&element("h2", "", text)),
        Part::Text(text) => html.push_str(&element("p", "", text)),
        Part::Points(points) => list(html, points),
        Part::Table(one) => table(html, one),
        Part::Figure(one) => figure(html, one),
    }
}

fn list(html: &mut String, points: &[String]) {
    html.push_str("<ul>\n");
    for point in points {
        html.push_str(&element("li", "", point));
    }
    html.push_str("</ul>\n");
}

fn table(html: &mut String, table: &PageTable) {
    html.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    for (column, head) in table.heads.iter().enumerate() {
        // Above numbers, to the right as they are.
        let first = table.rows.first().and_then(|row| row.get(column));
        let class = match first {
            Some(Cell::Number(_)) => " class=\"n\"",
            _ => "",
        };
        html.push_str(&format!("<th scope=\"col\"{class}>{}</th>", words(head)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for cell in row {
            let (class, text) = match cell {
                Cell::Text(text) => ("", text),
                Cell::Number(text) => (" class=\"n\"", text),
                Cell::Good(text) => (" class=\"good\"", text),
                Cell::Bad(text) => (" class=\"bad\"", text),
            };
            html.push_str(&format!("<td{class}>{}</td>", words(text)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

fn figure(html: &mut String, figure: &Figure) {
    let title = escaped(figure.title());
    let svg = figure.svg();
    // Read aloud, a picture is its title; its numbers follow.
    let svg = svg.replacen(
        "<svg ",
        &format!("<svg role=\"img\" aria-label=\"{title}\" "),
        1,
    );
    html.push_str(&format!(
        "<figure>\n<figcaption>{title}</figcaption>\n{svg}</figure>\n"
    ));
    html.push_str("<details>\n<summary>The numbers behind this picture</summary>\n");
    let events = figure.events();
    if !events.is_empty() {
        list(html, &events);
    }
    table(html, &figure.numbers());
    html.push_str("</details>\n");
}

fn facts(html: &mut String, name: &str, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    html.push_str(&element("h2", "", name));
    html.push_str("<table class=\"facts\">\n<tbody>\n");
    for fact in facts {
        html.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
            escaped(&fact.name),
            escaped(&fact.value)
        ));
    }
    html.push_str("</tbody></table>\n");
}

/// All that is needed to do it again.
fn again(html: &mut String, about: &About) {
    facts(html, "Measured on this machine", &about.machine);
    facts(html, "The server and its settings", &about.server);
    if about.command.is_empty() {
        return;
    }
    html.push_str(&element("h2", "", "Do it again"));
    html.push_str(&element("pre", "", &about.command));
    if let Some(seed) = about.seed {
        let reported = format!("Random choices came from the seed {seed}: use it to repeat them.");
        html.push_str(&element("p", "", &reported));
    }
}
