//! The modules of a crate, and what each of them names.

use crate::tidy::Tracked;
use crate::tidy::code::{Token, flatten, is_test};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The names of the modules above one, and its own; empty for the root of its crate.
pub(super) type Path = Vec<String>;

/// One module, without what is only there in tests.
#[derive(Default)]
pub(super) struct Module {
    /// The modules that it declares.
    pub(super) children: BTreeSet<String>,
    /// What it defines.
    pub(super) items: BTreeSet<String>,
    /// What it imports.
    pub(super) uses: Vec<Use>,
    /// The paths in its code.
    pub(super) paths: Vec<Path>,
}

/// A name that is imported.
pub(super) struct Use {
    /// What stands for.
    pub(super) path: Path,
    /// The name here; `*` for all that there is below `path`.
    pub(super) name: String,
    /// Whether others can import it from here.
    pub(super) is_shown: bool,
}

/// Reads the modules of the crate whose root is the file `root`, as far as they parse: what does not is said elsewhere.
pub(super) fn modules(root: &str, files: &[Tracked]) -> BTreeMap<Path, Module> {
    let mut reader = Reader {
        files: files
            .iter()
            .filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)))
            .collect(),
        modules: BTreeMap::new(),
    };
    let directory = root.rsplit_once('/').map_or("", |(directory, _)| directory);
    reader.file(Path::new(), root, directory);
    reader.modules
}

struct Reader<'a> {
    files: BTreeMap<&'a str, &'a str>,
    modules: BTreeMap<Path, Module>,
}

impl Reader<'_> {
    /// Reads a module that is a file; those that it declares are files in `directory`.
    fn file(&mut self, path: Path, file: &str, directory: &str) {
        let text = self.files.get(file).copied().unwrap_or_default();
        if let Ok(parsed) = syn::parse_file(text) {
            self.items(path, parsed.items, directory);
        }
    }

    fn items(&mut self, path: Path, items: Vec<syn::Item>, directory: &str) {
        let mut module = Module::default();
        for item in items {
            match item {
                syn::Item::Mod(item) if !is_test(&item.attrs) => {
                    let name = item.ident.to_string();
                    module.children.insert(name.clone());
                    self.child(&path, name, item.content, directory);
                }
                syn::Item::Use(item) if !is_test(&item.attrs) => module.imports(&item),
                syn::Item::Mod(_) | syn::Item::Use(_) => {}
                item => module.item(item),
            }
        }
        self.modules.insert(path, module);
    }

    fn child(
        &mut self,
        parent: &[String],
        name: String,
        content: Option<(syn::token::Brace, Vec<syn::Item>)>,
        directory: &str,
    ) {
        let below = format!("{directory}/{name}");
        let path = [parent, &[name]].concat();
        match content {
            Some((_, items)) => self.items(path, items, &below),
            None => {
                let beside = format!("{below}.rs");
                let file = match self.files.contains_key(beside.as_str()) {
                    true => beside,
                    false => format!("{below}/mod.rs"),
                };
                self.file(path, &file, &below);
            }
        }
    }
}

impl Module {
    fn imports(&mut self, item: &syn::ItemUse) {
        let is_shown = !matches!(item.vis, syn::Visibility::Inherited);
        let mut found = Vec::new();
        flatten_use(&item.tree, &Path::new(), &mut found);
        let uses = found.into_iter().map(|(path, name)| Use {
            path,
            name,
            is_shown,
        });
        self.uses.extend(uses);
    }

    /// Takes an item that is neither a module nor an import.
    fn item(&mut self, mut item: syn::Item) {
        let (attributes, name) = match &item {
            syn::Item::Const(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            syn::Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            syn::Item::Static(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Union(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Impl(item) => (&item.attrs, None),
            _ => return,
        };
        if is_test(attributes) {
            return;
        }
        self.items.extend(name.map(ToString::to_string));
        if let syn::Item::Impl(item) = &mut item {
            item.items
                .retain(|one| !matches!(one, syn::ImplItem::Fn(one) if is_test(&one.attrs)));
        }
        Imports(self).visit_item(&item);
        self.paths.extend(paths(&flatten(item.into_token_stream())));
    }
}

/// Finds what is imported inside functions.
struct Imports<'a>(&'a mut Module);

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.0.imports(item);
        visit::visit_item_use(self, item);
    }
}

fn flatten_use(tree: &syn::UseTree, above: &[String], found: &mut Vec<(Path, String)>) {
    let with = |name: &syn::Ident| [above, &[name.to_string()]].concat();
    match tree {
        syn::UseTree::Path(one) => flatten_use(&one.tree, &with(&one.ident), found),
        syn::UseTree::Group(group) => {
            let all = group.items.iter();
            all.for_each(|one| flatten_use(one, above, found));
        }
        syn::UseTree::Glob(_) => found.push((above.to_vec(), "*".to_owned())),
        syn::UseTree::Name(one) if one.ident == "self" => {
            let name = above.last().cloned().unwrap_or_default();
            found.push((above.to_vec(), name));
        }
        syn::UseTree::Name(one) => found.push((with(&one.ident), one.ident.to_string())),
        syn::UseTree::Rename(one) if one.ident == "self" => {
            found.push((above.to_vec(), one.rename.to_string()));
        }
        syn::UseTree::Rename(one) => found.push((with(&one.ident), one.rename.to_string())),
    }
}

/// Returns the paths among the tokens of an item. A single name may be a variable's: it counts as a type's or a
/// constant's by its first letter, and as a function's where it is called.
fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let first = at;
        at += 1;
        if !is_name(&tokens[first]) {
            continue;
        }
        let mut path = vec![tokens[first].text.clone()];
        while let [colons, name, ..] = &tokens[at..]
            && colons.text == "::"
            && is_name(name)
        {
            path.push(name.text.clone());
            at += 2;
        }
        let before = first
            .checked_sub(1)
            .map_or("", |one| tokens[one].text.as_str());
        let after = tokens.get(at).map_or("", |one| one.text.as_str());
        let is_item = path.len() > 1
            || after == "("
            || path[0].starts_with(|letter: char| letter.is_uppercase());
        if is_item && ![".", "::", "fn", "let", "use"].contains(&before) {
            found.push(path);
        }
    }
    found
}

fn is_name(token: &Token) -> bool {
    token
        .text
        .starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}
